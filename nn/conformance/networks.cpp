#include "nn/conformance/networks.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "core/bfloat16.h"

namespace plumb::nn::rules {

std::vector<BranchChoice> junctions() { return transformer_block({.heads = heads}, {.hidden = 4 * dim}); }

std::unique_ptr<Stack> make_stack(const MethodChoice& method, std::int64_t blocks,
                                  const std::vector<BranchChoice>& list) {
  auto stack = std::make_unique<Stack>(
      StackOptions{.dim = dim, .depth = blocks, .method = method, .junctions = list, .final_norm = true});
  initialize(*stack, 0);
  return stack;
}

std::unique_ptr<ViT> make_vit(const MethodChoice& method, std::uint64_t seed) {
  return std::make_unique<ViT>(ViTOptions{.image = 8,
                                          .patch = 4,
                                          .channels = 1,
                                          .classes = classes,
                                          .dim = dim,
                                          .depth = 2,
                                          .heads = heads,
                                          .method = method,
                                          .pool = Pool::token,
                                          .seed = seed});
}

Tensor stream() { return random_normal({2, 5, dim}, 0, "stream"); }
Tensor images() { return random_normal({3, 1, 8, 8}, 0, "images"); }
Tensor labels() { return integers({0, 3, 4}, {3}); }

void shake(const Module& module) {
  for (const Parameter& p : module.parameters()) {
    if (is_measured(p.role)) continue;
    const Tensor noise = random_normal(p.value.shape(), 1, p.name) * (p.value.shape().rank() > 1 ? 0.3 : 0.2);
    copy_into((p.value.detach() + noise).array(), p.value.array());
  }
}

Shaken::Shaken(std::unique_ptr<Stack> of, StackInputs more) : stack(std::move(of)), inputs(std::move(more)) {
  shake(*stack);
  for (const Parameter& p : stack->parameters())
    if (is_measured(p.role))
      measured.emplace_back(p.value, to_vector(p.value.array()));
    else
      variables.push_back(p.value);
  variables.push_back(x);
}

Tensor Shaken::output() const {
  for (const auto& [value, initial] : measured)
    copy_into(tensor(initial, value.shape(), {value.dtype(), value.device()}).array(), value.array());
  return (*stack)(x, inputs);
}

double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

double largest(const Tensor& x) {
  double m = 0;
  for (double v : x.values()) m = worse(m, std::abs(v));
  return m;
}

double largest_difference(const Tensors& a, const Tensors& b) {
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].values(), y = b[i].values();
    check(x.size() == y.size(), "expected shape {}, got {}", b[i].shape(), a[i].shape());
    for (std::size_t j = 0; j < x.size(); ++j) {
      gap = worse(gap, std::abs(x[j] - y[j]));
      size = std::max(size, std::abs(y[j]));
    }
  }
  return gap == 0 ? 0 : gap / size;
}

double unchanged_in_bf16(const std::vector<double>& stream, const std::vector<double>& added) {
  check(stream.size() == added.size() && !stream.empty(),
        "[unchanged_in_bf16] expected the same number of elements in both, got {} and {}", stream.size(), added.size());
  std::size_t unchanged = 0;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    const float x = bfloat16(stream[i]), branch = bfloat16(added[i]);
    unchanged += added[i] != 0 && bfloat16(static_cast<double>(x) + static_cast<double>(branch)) == x;
  }
  return static_cast<double>(unchanged) / static_cast<double>(stream.size());
}

}  // namespace plumb::nn::rules
