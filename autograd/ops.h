// All ops on tensors. Each checks its operands and throws "[op] expected ..., got ..."; each has derivatives of any order.
// Operands of one call share dtype and device. Elementwise ops broadcast by NumPy's rules. Negative axes count from the end.
#pragma once

#include <optional>
#include <span>

#include "autograd/tensor.h"
#include "core/backend.h"

namespace plumb {

// ---- elementwise (ops/arithmetic.cpp) --------------------------------------------------------------------------------------------
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& x, double c);
Tensor operator*(const Tensor& x, double c);
inline Tensor operator+(double c, const Tensor& x) { return x + c; }
inline Tensor operator*(double c, const Tensor& x) { return x * c; }
inline Tensor operator-(const Tensor& x) { return x * -1.0; }
inline Tensor operator-(const Tensor& x, double c) { return x + -c; }
inline Tensor operator-(double c, const Tensor& x) { return -x + c; }
inline Tensor operator/(const Tensor& x, double c) { return x * (1 / c); }
Tensor exp(const Tensor& x);
Tensor log(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  // x^-1/2
Tensor relu(const Tensor& x);   // derivative 0 at 0
Tensor abs(const Tensor& x);    // derivative 0 at 0
Tensor sign(const Tensor& x);   // -1, 0 or 1; derivative 0
Tensor log1p(const Tensor& x);  // log(1 + x), accurate for small x too
Tensor pow(const Tensor& x, double exponent);
inline Tensor operator/(double c, const Tensor& x) { return pow(x, -1) * c; }
// low where x < low, high where x > high, else x; infinities leave a side open. The derivative is 1 where low <= x <= high, else 0.
Tensor clamp(const Tensor& x, double low, double high);
// From any dtype to f32, f64 or bf16, rounded to the nearest, ties to even; the gradient is cast back. Integers have none: a mask becomes 0 and 1.
Tensor cast(const Tensor& x, DType dtype);

// ---- comparisons and selection (ops/compare.cpp, ops/where.cpp) ---------------------------------------------------------------------
// Masks, u8: 1 where it holds, else 0, as where() takes them; no gradient. Of one dtype, which may be any; all are false where one is NaN.
// A number is compared in the tensor's dtype. (== would ask whether two handles are one tensor, so it is not there.)
Tensor equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& x, double c);
Tensor less(const Tensor& x, double c);
Tensor less_equal(const Tensor& x, double c);
Tensor greater(const Tensor& x, double c);
Tensor greater_equal(const Tensor& x, double c);
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }
inline Tensor operator<(const Tensor& x, double c) { return less(x, c); }
inline Tensor operator<=(const Tensor& x, double c) { return less_equal(x, c); }
inline Tensor operator>(const Tensor& x, double c) { return greater(x, c); }
inline Tensor operator>=(const Tensor& x, double c) { return greater_equal(x, c); }
// mask u8: a where it is not 0, else b. Only where an element comes from does its gradient go.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);

// ---- reductions (ops/reduce.cpp, ops/argmax.cpp) -----------------------------------------------------------------------------------
using Axes = std::vector<int>;  // {} is all axes
Tensor sum(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor mean(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);
Tensor max(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);  // ties share the gradient
Tensor min(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);  // ties share the gradient
// Mean squared distance from the mean, in two passes: the sum divided by n - correction. 0 is NumPy's default and what norms use, 1 is the unbiased
// estimate, PyTorch's default.
Tensor var(const Tensor& x, const Axes& axes = {}, bool keep_axes = false, double correction = 0);
Tensor norm(const Tensor& x, const Axes& axes = {}, bool keep_axes = false);  // sqrt of the sum of squares; derivative 0 where that is 0
// Where along the axis the largest element is, i64 like labels; the first of equal ones, or the first NaN. No gradient.
Tensor argmax(const Tensor& x, int axis = -1, bool keep_axis = false);
Tensor sum_to(const Tensor& x, const Shape& shape);  // the sum that undoes a broadcast from `shape`
Tensor broadcast_to(const Tensor& x, const Shape& shape);

// ---- movement (ops/movement.cpp) ---------------------------------------------------------------------------------------------------
Tensor reshape(const Tensor& x, const Shape& shape);  // shares the buffer
// The same, where one extent may be -1, which is what the others leave: reshape(x, {-1}), reshape(x, {batch, -1})
Tensor reshape(const Tensor& x, std::initializer_list<std::int64_t> extents);
Tensor permute(const Tensor& x, const Axes& axes);  // axis i of the result is axis axes[i] of x
Tensor transpose(const Tensor& x, int axis_a = -2, int axis_b = -1);
Tensor concat(const Tensors& parts, int axis);
Tensor stack(const Tensors& parts, int axis = 0);                               // of one shape, along a new axis of the result
Tensors chunk(const Tensor& x, std::int64_t count, int axis);                   // `count` equal slices; what does not divide is for slice()
Tensor slice(const Tensor& x, int axis, std::int64_t begin, std::int64_t end);  // x[.., begin:end, ..]
Tensor gather(const Tensor& x, const Tensor& index);                            // rows of x [V, ..] at index i64 [..]: [index.., ..]

// ---- products (ops/matmul.cpp, ops/linear.cpp) -------------------------------------------------------------------------------------
// a [.., M, K] b [.., K, N] -> [.., M, N], each transposed in its last two axes first where asked; leading axes broadcast.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
// x [.., K], weight [N, K], bias [N] or undefined -> x weight^T + bias [.., N]
//
// While PrecisionScope says bf16 (core/precision.h), linear layers of f32 operands round what they multiply to bf16. Their results are f32, or,
// where `bf16_result` asks for it, bf16 for an op that takes such: these here as x, attention_qkv(), cast(). In f32 it asks for nothing.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, bool bf16_result = false);

// The same with its neighbours in one pass over the rows, so that what lies between is neither written nor kept. Equal to the ops that they
// name up to rounding.
struct NormParameters {  // of a layer norm over the last axis: weight, bias [K], eps as layer_norm() takes it
  Tensor weight = {}, bias = {};
  double eps = 1e-6;
};
// gelu(linear(x, ..))
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu form = Gelu::erf, bool bf16_result = false);
// linear(layer_norm(x, ..), ..), and gelu of that
Tensor norm_linear(const Tensor& x, const NormParameters& norm, const Tensor& weight, const Tensor& bias = {}, bool bf16_result = false);
Tensor norm_linear_gelu(const Tensor& x, const NormParameters& norm, const Tensor& weight, const Tensor& bias, Gelu form = Gelu::erf,
                        bool bf16_result = false);
// gated_residual(skip, linear(x, ..), gate, row_scale)
Tensor linear_residual(const Tensor& skip, const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Tensor& gate = {},
                       const Tensor& row_scale = {});

// ---- convolution and batch norm (ops/conv2d.cpp, ops/batch_norm.cpp) ---------------------------------------------------------------
// Cross-correlation, as PyTorch's conv2d: x [B, C, H, W], weight [O, C, kh, kw], bias [O] or undefined -> [B, O, H', W'] with
// H' = floor((H + 2 padding - kh) / stride) + 1; 1 <= stride < 2^31, 0 <= padding < 2^31. conv2d(x, w, b, {.stride = 2, .padding = 1})
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
// Mean and variance of each channel of x [B, C, H, W], over (B, H, W): [C] each, the variance divided by B H W (biased).
struct BatchStatistics {
  Tensor mean, variance;
};
BatchStatistics batch_statistics(const Tensor& x);
// Batch norm (Ioffe, Szegedy 2015): weight (x - mean) / sqrt(variance + eps) + bias; weight, bias [C]. With the
// statistics of this batch, through which gradients flow (training), or with those given (evaluation, or a caller that
// has them). eps as layer_norm() takes it. Composed: keeps about four arrays of x's size for the backward pass.
Tensor batch_norm2d(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor batch_norm2d(const Tensor& x, const BatchStatistics& statistics, const Tensor& weight, const Tensor& bias, double eps);

// ---- activations and softmax (ops/sigmoid.cpp, ops/gelu.cpp, ops/softmax.cpp) ------------------------------------------------------
Tensor sigmoid(const Tensor& x);   // 1 / (1 + e^-x)
Tensor silu(const Tensor& x);      // x sigmoid(x)
Tensor softplus(const Tensor& x);  // log(1 + e^x)
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);
// Of n equal entries, such as zeros, each becomes 1 / n, or -log n.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

// ---- norms (ops/layer_norm.cpp, ops/rms_norm.cpp) ----------------------------------------------------------------------------------
// The eps of every norm is at least `least_eps`: then a row of zeros has a value and finite gradients of order one and
// two, in f32 too. With an eps of 0 they would be NaN.
inline constexpr double least_eps = 1e-12;
// Over the last axis: weight (x - mean) / sqrt(var + eps) + bias, var divided by D; weight, bias [D]. A row of zeros
// becomes bias; its gradient is (u - mean(u)) / sqrt(eps), u = weight dy.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// weight x / sqrt(mean(x^2) + eps); weight [D]. A row of zeros stays zero; its gradient is weight dy / sqrt(eps).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// DyT (Zhu et al. 2025), a norm without statistics: weight tanh(alpha x) + bias; alpha [1], weight, bias [D]
// (ops/dyt.cpp). A row of zeros becomes bias; its gradient is alpha weight dy.
Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);

// ---- attention (ops/attention.cpp) -------------------------------------------------------------------------------------------------
struct AttentionOptions {
  double drop_key = 0;                  // DropKey: probability that a key is dropped from a query's row, before the softmax, [0, 1]
  double dropout = 0;                   // of the probabilities, after the softmax, as dropout() takes it
  EmptyRow empty = EmptyRow::keep_all;  // what a query does that lost every key
  Tensor keep = {};                     // u8, broadcasts to [B, H, N, M]; 1 = key kept
  std::optional<double> scale = {};     // of the scores, at least 0; head_dim^-1/2 if not given
  bool causal = false;                  // query n of N has the keys up to n + M - N alone: the last one has all M; no mask is stored
  // DropKey's form, core/drop_key.h. The structured shapes want the grid that the last grid.cells() of the M keys lie on.
  DropShape drop_shape = DropShape::plain;
  std::int64_t drop_window = 0;  // 0: the shape's default
  DropSharing drop_sharing = DropSharing::per_entry;
  KeyGrid grid = {};
};
// q [B, H, N, E], k, v [B, H, M, E] -> softmax(scale q k^T) v [B, H, N, E]. Random draws depend on seed, step and the
// open module path. A query of zeros attends to all its keys alike. One without keys gives, by `empty`: keep_all, what
// it gives without DropKey, or what it gives with all M keys if the keep mask and causal leave it none either; zero, 0,
// and no gradient flows; paper, the mean of all M rows of v, and the gradient flows to v alone.
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options = {});
// The same on a packed projection [B, T, 3 D] (q, k, v, each of `heads` heads side by side) -> [B, T, D]: no head is ever moved. qkv may be
// bf16, then so is the result; scores, softmax and sums are f32.
Tensor attention_qkv(const Tensor& qkv, std::int64_t heads, const AttentionOptions& options = {});

// Talking heads (Shazeer et al. 2020; ops/attention_talking.cpp): x [B, H, N, M], weight [H, H], bias [H] ->
// y_i = sum_j weight_ij x_j + bias_i over the head axis.
Tensor mix_heads(const Tensor& x, const Tensor& weight, const Tensor& bias);
// Attention whose heads are mixed before and after the softmax: A = softmax(mix(scale q k^T)), then mix(A) v, with pre_ and post_weight [H, H],
// pre_ and post_bias [H]. DropKey, the keep mask and the policy for empty rows act on the scores already mixed, dropout on the mixed
// probabilities; the draws are attention()'s. A row without keys under EmptyRow::zero is 0 in A, the other heads still flow into it. Not
// fused, as each entry needs all heads: keeps several [B, H, N, M] arrays, but no masks (what higher
// derivatives go through keeps them). pre_bias shifts whole rows, which the softmax undoes: its gradient is 0.
Tensor attention_talking(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& pre_weight, const Tensor& pre_bias,
                         const Tensor& post_weight, const Tensor& post_bias, const AttentionOptions& options = {});

// ---- loss (ops/cross_entropy.cpp) --------------------------------------------------------------------------------------------------
// Mean over rows of logits [.., C]; labels i64 [..]. smoothing s: target (1 - s) onehot + s / C. A label out of range is an error; on cuda, where
// nobody waits for labels, the loss is NaN, and the error comes in anomaly mode, which a divergence is looked into with.
Tensor cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing = 0);
Tensor soft_cross_entropy(const Tensor& logits, const Tensor& target);  // target [.., C], a constant
// Which part of the rows of logits [.., C] has its argmax at its label, in [0, 1]; labels i64 [..], as cross_entropy() takes them. A number, without
// a gradient (ops/argmax.cpp).
double accuracy(const Tensor& logits, const Tensor& labels);

// ---- residual branches (ops/dropout.cpp, ops/gated_residual.cpp) -------------------------------------------------------------------
// Zero with probability p, else x / (1 - p); p in [0, 1), rounded to the 16 bits of a draw: one below 2^-17 drops nothing, one above 1 - 2^-16
// is refused. Draws depend on seed, step, path and element (sample-major).
Tensor dropout(const Tensor& x, double p);
// skip + row_scale[sample] * gate * branch: skip, branch [B, .., D]; gate [1] or [D] or undefined; row_scale [B], a constant, or undefined.
Tensor gated_residual(const Tensor& skip, const Tensor& branch, const Tensor& gate = {}, const Tensor& row_scale = {});

// ---- what fused ops mean, written in the ops above: their reference in tests, and what is differentiated for higher orders ---------
Tensor linear_composed(const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor gelu_composed(const Tensor& x, Gelu form);
Tensor softmax_composed(const Tensor& x);      // last axis
Tensor log_softmax_composed(const Tensor& x);  // last axis
Tensor layer_norm_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor rms_norm_composed(const Tensor& x, const Tensor& weight, double eps);
Tensor dyt_composed(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);
Tensor conv2d_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options);
// keep u8 [B, H, N, M], rows without a kept key give 0; multiplier [B, H, N, M] of the probabilities, or undefined.
Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& keep, const Tensor& multiplier);
Tensor cross_entropy_composed(const Tensor& logits, const Tensor& target);
Tensor gated_residual_composed(const Tensor& skip, const Tensor& branch, const Tensor& gate, const Tensor& row_scale);

namespace detail {
// For an operand that must be there: "[op] expected a tensor, got an undefined tensor (..)".
inline void check_defined(const char* op, const Tensor& x) { check(x.defined(), "[{}] {}", op, expected_a_tensor); }
void check_alike(const char* op, const Tensor& a, const Tensor& b);     // both defined, same dtype, same device
void check_operands(const char* op, const Tensor& a, const Tensor& b);  // the same, and floating
void check_float(const char* op, const Tensor& x);
void check_eps(const char* op, double eps);                                     // of a norm: finite, at least least_eps
int checked_axis(const char* op, const Shape& shape, int axis);                 // as a non-negative index
void check_logits(const char* op, const Tensor& logits);                        // floating [.., C], not empty
void check_labels(const char* op, const Tensor& logits, const Tensor& labels);  // i64 [..] in 0..C - 1
// Operands of the residual junction, where the branch has this shape.
void check_junction(const char* op, const Tensor& skip, const Shape& branch, const Tensor& gate, const Tensor& row_scale);
}  // namespace detail

}  // namespace plumb
