#include "experiments/vision/problem/evaluate.h"

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/loader.h"
#include "nn/evaluation_scope.h"

namespace plumb::vision {

Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization, std::int64_t batch) {
  const nn::EvaluationScope scope(model);
  return evaluate([&](const Tensor& images) { return model(images); }, set, normalization, batch);
}

Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set,
                    const Normalization& normalization, std::int64_t batch) {
  check(model != nullptr, "[evaluate] expected a function from images to logits, got an empty one");
  check(set.size() > 0, "[evaluate] expected at least one image, got an empty set");
  check(batch > 0, "[evaluate] expected a batch of at least 1, got {}", batch);
  const std::int64_t size = set.size();
  const NoGrad no_grad;
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t first = 0; first < size; first += batch) {
    const std::int64_t count = std::min(batch, size - first);
    const Batch part = to_tensors(evaluation_batch(set, normalization, first, count, loading_threads(set)), set);
    const Tensor logits = model(part.images);
    check(logits.defined() && logits.shape() == Shape{count, set.classes},
          "[evaluate] expected logits {} for images {}, got {}", Shape{count, set.classes}, part.images.shape(),
          logits.defined() ? to_string(logits.shape()) : "an undefined tensor");
    loss += cross_entropy(logits, part.labels).item() * static_cast<double>(count);
    correct += std::llround(accuracy(logits, part.labels) * static_cast<double>(count));
  }
  return {loss / static_cast<double>(size), static_cast<double>(correct) / static_cast<double>(size)};
}

}  // namespace plumb::vision
