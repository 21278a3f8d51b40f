// The predictions of a detector of objects, and the weights of the terms that compare them with objects.
#pragma once

#include "autograd/tensor.h"

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

// Options of set_loss().
struct SetLossOptions {
  SetTerms matching = {};  // the weights of the terms in the cost of a pair
  SetTerms loss = {};      // the weights of the terms in the loss
  // The weight of a prediction without an object in the mean of the cross-entropy; predictions with an object have the
  // weight 1.
  double no_object = 0.1;
};

}  // namespace plumb::nn
