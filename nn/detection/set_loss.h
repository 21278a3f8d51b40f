// The loss of a detector that predicts a set of objects (Carion et al. 2020, DETR, section 3.1).
#pragma once

#include "nn/detection/boxes.h"
#include "nn/detection/detections.h"

namespace plumb::nn {

// The loss and its terms, each a scalar: total = classes + l1 + giou. The terms include their weights, and are sums
// over the layers.
struct SetLoss {
  Tensor total, classes, l1, giou;
};

// Returns the loss of a batch. Each layer is matched by itself: the cost of a pair of a prediction and a target is
//   -classes p(label) + l1 |box - target|_1 - giou GIoU(box, target)
// and the sum of the costs of an image is least. With more targets than queries, every query gets a target. In each
// layer,
//   classes  is the weighted mean of the cross-entropy over all queries of the batch: the sum of the weighted values,
//            divided by the sum of the weights
//   l1, giou are sums over the pairs, divided by the number of targets in the batch, or by 1 if there are none
// Gradients flow to the predictions; the matching is constant. The loss depends neither on the order of the targets of
// an image nor on the order of the queries. If a cost of the matching is not finite, all terms are NaN, so that a
// training stops as diverged; in anomaly mode, the error names the term of the cost. Throws Error if a shape,
// a label or a target box is wrong; the message names the image.
SetLoss set_loss(const Detections& predicted, const Targets& targets, const SetLossOptions& options = {});

}  // namespace plumb::nn
