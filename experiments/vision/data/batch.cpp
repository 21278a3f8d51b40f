#include "experiments/vision/data/batch.h"

#include <cmath>
#include <vector>

#include "autograd/ops.h"

namespace plumb::vision {

Tensor loss_of(const Tensor& logits, const Batch& batch, double label_smoothing) {
  const Tensor own = cross_entropy(logits, batch.labels, label_smoothing);
  return batch.others.defined()
             ? batch.share * own + (1 - batch.share) * cross_entropy(logits, batch.others, label_smoothing)
             : own;
}

double target_entropy(const Batch& batch, std::int64_t classes, double label_smoothing) {
  const double spread = label_smoothing / static_cast<double>(classes);  // the part of each class
  const auto part = [](double p) { return p > 0 ? -p * std::log(p) : 0; };
  // The entropy of a target with the weight `share` on one class, and 1 - share on another.
  const auto entropy = [&](double share) {
    const double hard = 1 - label_smoothing, others = static_cast<double>(classes - (share < 1 ? 2 : 1));
    return part(share * hard + spread) + (share < 1 ? part((1 - share) * hard + spread) : 0) + others * part(spread);
  };
  return (1 - batch.mixed) * entropy(1) + (batch.mixed > 0 ? batch.mixed * entropy(batch.share) : 0);
}

}  // namespace plumb::vision
