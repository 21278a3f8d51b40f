// A batch of images as tensors, and its loss.
#pragma once

#include <cstdint>

#include "autograd/tensor.h"

namespace plumb::vision {

// A batch on the default device: images [B, C, H, W] of the default dtype and labels [B] of dtype i64.
struct Batch {
  Tensor images, labels;
  // If images are mixed (mixup, CutMix): the labels [B] of the mixed-in images, which have the weight 1 - share. If
  // images are not mixed, `others` is undefined.
  Tensor others = {};
  double share = 1;
  double mixed = 0;  // share of the samples whose mixed-in image has another label
};
// The mean cross-entropy of a batch. The loss of a mixed batch is the loss against `labels` times `share`, plus the
// loss against `others` times (1 - share).
Tensor loss_of(const Tensor& logits, const Batch& batch, double label_smoothing = 0);
// The mean entropy, in nats, of the targets of loss_of(): the lowest loss that any logits of `classes` classes can
// have. The entropy is 0 without label smoothing and mixed images.
double target_entropy(const Batch& batch, std::int64_t classes, double label_smoothing = 0);

}  // namespace plumb::vision
