#include "experiments/lab/data/batch.h"

#include <vector>

#include "autograd/autograd.h"

namespace plumb::lab {

Batch to_tensors(const HostBatch& batch, const ImageSet& set) {
  std::vector<std::int64_t> others;
  std::vector<HostValues> given{{batch.images.data(), {batch.size(), set.channels, set.height, set.width}, DType::f32},
                                {batch.labels.data(), {batch.size()}, DType::i64}};
  if (batch.share < 1) {
    others.assign(batch.labels.rbegin(), batch.labels.rend());
    given.push_back({others.data(), {batch.size()}, DType::i64});
  }
  const std::vector<Array> parts = arrays_from(given, defaults().device);
  return {cast(Tensor(parts[0]), defaults().dtype), Tensor(parts[1]), batch.share < 1 ? Tensor(parts[2]) : Tensor(),
          batch.share};
}

Tensor loss_of(const Tensor& logits, const Batch& batch, double label_smoothing) {
  const Tensor own = cross_entropy(logits, batch.labels, label_smoothing);
  return batch.others.defined()
             ? batch.share * own + (1 - batch.share) * cross_entropy(logits, batch.others, label_smoothing)
             : own;
}

}  // namespace plumb::lab
