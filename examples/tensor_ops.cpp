// Ops on tensors without a module: softmax regression on three clouds of points, its accuracy by class, and the largest
// eigenvalue of the Hessian of its loss.
#include <plumb/plumb.h>

#include <filesystem>
using namespace plumb;

int main() {
  const std::int64_t points = 90, classes = 3;
  const Tensor labels = repeat_interleave(arange(classes), points / classes, 0);  // 0, 0, .., 1, 1, .., 2
  const Tensor centres = tensor({{2, 0}, {-1, 2}, {-1, -2}});
  const Tensor x = embedding(labels, centres) + random_normal({points, 2}, /*seed=*/0, "noise");

  const Tensor inputs = cat({x, ones({points, 1})}, 1);  // a column of ones for the bias
  Tensor weight = zeros({3, classes});
  const auto loss_at = [&](const Tensor& w) { return cross_entropy(matmul(inputs, w), labels); };
  for (int step = 0; step < 50; ++step) weight = weight - grad(loss_at)(weight);

  const Tensor w = variable(weight), logits = matmul(inputs, w), loss = cross_entropy(logits, labels);
  const Tensor hits = cast(equal(argmax(logits), labels), DType::f32);
  const Tensor by_class = mean(reshape(hits, {classes, -1}), -1);
  fmt::print("loss {:.3f}, accuracy {:.2f}, by class {}\n", loss.item(), mean(hits).item(), by_class);

  const Ordered least = topk(max(softmax(logits), -1), 3, 0, /*largest=*/false);  // the least certain points
  fmt::print("least certain: points {} with probabilities {}\n", least.indices, least.values);
  fmt::print("correlation of the inputs:\n{}\n", einsum("ni,nj->ij", x, x) / static_cast<double>(points));

  const TopEigenvalue sharpness = top_eigenvalue(loss, {w});
  fmt::print("largest eigenvalue of the Hessian {:.4f} after {} products\n", sharpness.value, sharpness.products);

  const auto file = std::filesystem::temp_directory_path() / "plumb_example_weight.npy";
  save_npy(file, weight);  // np.load() reads this file
  fmt::print("read back unchanged: {}\n", allclose(load_npy(file), weight, 0, 0));
  std::filesystem::remove(file);
  return 0;
}
