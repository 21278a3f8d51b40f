// Losses, each a scalar. Predictions and targets are floating and have the same shape; nothing broadcasts. Unless a
// comment says otherwise, gradients flow to the prediction and the target.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- classification (cross_entropy.cpp, argmax.cpp)

// The mean cross entropy of the rows of logits [.., C] with labels i64 [..]. With smoothing s, the target of a row is
// (1 - s) onehot + s / C. A label out of range throws Error on the host. On cuda, such a label makes the loss NaN,
// because a check would have to wait for the labels; in anomaly mode (autograd/debug.h), such a label throws Error on
// cuda too.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing = 0);
// The mean cross entropy of the rows of logits with a target of probabilities, both [.., C].
// The target must be a constant.
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target);
// The fraction of rows of logits [.., C] whose argmax is the label, in [0, 1]; labels i64 [..] as in cross_entropy().
// Waits for the result.
double accuracy(const Tensor& logits, const Tensor& labels);

// ---- regression and probabilities (losses.cpp)

// The mean of d^2 over all elements, with d = prediction - target. All losses of this section throw Error if there is
// no element.
Tensor mse_loss(const Tensor& prediction, const Tensor& target);
// The mean of |d|; the derivative is 0 at d = 0.
Tensor l1_loss(const Tensor& prediction, const Tensor& target);
// The mean of d^2 / 2 if |d| <= delta, else delta (|d| - delta / 2).
Tensor huber_loss(const Tensor& prediction, const Tensor& target, double delta = 1);
// The mean of -t log p - (1 - t) log(1 - p) for p = sigmoid(logits) and targets t in [0, 1], computed without overflow.
Tensor binary_cross_entropy_with_logits(const Tensor& logits, const Tensor& target);
// The Kullback-Leibler divergence KL(target || prediction): the sum of t (log t - log p) over the last axis, averaged
// over the rows (PyTorch: reduction="batchmean" for rows [B, C]). A term is 0 if t is 0. The arguments are log p, such
// as a result of log_softmax(), and t.
Tensor kl_div(const Tensor& log_prediction, const Tensor& target);

}  // namespace plumb
