// Losses, each a scalar. Predictions and targets are floating and of one shape, nothing broadcasts; gradients go to
// both unless said.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- classes (cross_entropy.cpp, argmax.cpp)
// ---------------------------------------------------------------------------------------- Mean over rows of logits
// [.., C]; labels i64 [..]. smoothing s: target (1 - s) onehot + s / C. A label out of range is an error; on cuda,
// where nobody waits for labels, the loss is NaN, and the error comes in anomaly mode, which a divergence is looked
// into with.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing = 0);
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target);  // target [.., C], a constant
// Which part of the rows of logits [.., C] has its argmax at its label, in [0, 1]; labels i64 [..], as cross_entropy()
// takes them. A number, without a gradient.
double accuracy(const Tensor& logits, const Tensor& labels);

// ---- regression and probabilities (losses.cpp)
// -------------------------------------------------------------------------------------- Means over all elements, of
// which there must be one. d = prediction - target.
Tensor mse_loss(const Tensor& prediction, const Tensor& target);  // d^2
Tensor l1_loss(const Tensor& prediction, const Tensor& target);   // |d|, derivative 0 at 0
Tensor huber_loss(const Tensor& prediction, const Tensor& target,
                  double delta = 1);  // d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)
// Of the probabilities sigmoid(logits) against targets in [0, 1]: -t log p - (1 - t) log(1 - p), in which nothing
// overflows
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target);
// Kullback and Leibler's divergence KL(target || prediction): the sum of t (log t - log p) over the last axis, 0 where
// t is 0, and its mean over the rows (PyTorch: reduction="batchmean" of rows [B, C]). Takes log p, such as
// log_softmax() makes, and t.
Tensor kl_div(const Tensor& log_prediction, const Tensor& target);

}  // namespace plumb
