// A batch of the loader as tensors.
#pragma once

#include "autograd/tensor.h"
#include "experiments/lab/data/loader.h"

namespace plumb::lab {

// Of the default dtype and device: images [B, C, H, W], labels [B].
struct Batch {
  Tensor images, labels;
  Tensor others = {};  // of a mixed batch (data/augment.h): labels [B] that the images are of as well, to 1 - share;
                       // undefined of any other
  double share = 1;
};
// The mean cross-entropy of a batch; of a mixed one, to its shares.
Tensor loss_of(const Tensor& logits, const Batch& batch, double label_smoothing = 0);
Batch to_tensors(const HostBatch& batch, const ImageSet& set);

}  // namespace plumb::lab
