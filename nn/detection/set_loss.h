// The loss of a detector that predicts a set of objects (Carion et al. 2020, DETR, section 3.1).
#pragma once

#include "nn/detection/assignment.h"
#include "nn/detection/boxes.h"

namespace plumb::nn {

// The predictions of a detector for B images. A detector with several layers of predictions (auxiliary losses) gives
// one set of Q predictions after each of its L layers, the last layer last.
struct Detections {
  Tensor logits;  // [L, B, Q, C + 1]: C classes, then "no object"
  Tensor boxes;   // [L, B, Q, 4] in the centre form, in shares of the sides of the image
};

// One number for each term of the loss: cross-entropy of the class, L1 distance of the boxes in the centre form, and
// 1 - generalised IoU. The defaults are those of facebookresearch/detr (main.py).
struct SetTerms {
  double classes = 1, l1 = 5, giou = 2;
};

// Options of set_loss() and match_sets().
struct SetLossOptions {
  SetTerms matching = {};  // the weights of the terms in the cost of a pair
  SetTerms loss = {};      // the weights of the terms in the loss
  // The weight of a prediction without an object in the mean of the cross-entropy; predictions with an object have the
  // weight 1.
  double no_object = 0.1;
};

// The pairs of each layer and image, (query, index of the target), sorted by query. The pairs of image b in layer l are
// at pairs[l][b].
struct SetMatches {
  std::vector<std::vector<std::vector<RowColumn>>> pairs;
  // If a cost is not finite, the name of its term: "classes", "l1" or "giou". There are then no pairs.
  std::string not_finite = {};
};
// Matches the predictions of each layer and image with the targets of the image. The cost of a pair is
//   -classes p(label) + l1 |box - target|_1 - giou GIoU(box, target)
// and the sum of the costs of an image is least (assign()). With more targets than queries, every query gets a target.
// Waits for the predictions. Throws Error if a shape, a label or a target box is wrong; the message names the image.
SetMatches match_sets(const Detections& predicted, const Targets& targets, const SetLossOptions& options = {});

// The loss and its terms, each a scalar: total = classes + l1 + giou. The terms include their weights, and are sums
// over the layers.
struct SetLoss {
  Tensor total, classes, l1, giou;
};

// Returns the loss of a batch. Each layer is matched by itself. In each layer,
//   classes  is the weighted mean of the cross-entropy over all queries of the batch: the sum of the weighted values,
//            divided by the sum of the weights
//   l1, giou are sums over the pairs, divided by the number of targets in the batch, or by 1 if there are none
// Gradients flow to the predictions; the matching is constant. The loss depends neither on the order of the targets of
// an image nor on the order of the queries. If a cost of the matching is not finite, all terms are NaN, so that a
// training stops as diverged; in anomaly mode, the error names the term of the cost. Throws the errors of match_sets().
SetLoss set_loss(const Detections& predicted, const Targets& targets, const SetLossOptions& options = {});

}  // namespace plumb::nn
