// A batch of the loader as tensors, and its loss.
#pragma once

#include "autograd/tensor.h"
#include "experiments/lab/data/loader.h"

namespace plumb::lab {

// A batch on the default device: images [B, C, H, W] of the default dtype and labels [B] of dtype i64.
struct Batch {
  Tensor images, labels;
  // Only in a mixed batch (mixup, CutMix): the labels [B] of the mixed-in images, whose share is 1 - share. Otherwise
  // undefined.
  Tensor others = {};
  double share = 1;
};
// The mean cross-entropy of a batch. For a mixed batch: share times the loss against `labels`, plus (1 - share) times
// the loss against `others`.
Tensor loss_of(const Tensor& logits, const Batch& batch, double label_smoothing = 0);
// Copies a batch to the default device.
Batch to_tensors(const HostBatch& batch, const ImageSet& set);

}  // namespace plumb::lab
