// All ops on tensors. Each checks its operands and throws "[op] expected ..., got ..."; each has derivatives of any
// order. Operands of one call share dtype and device. Elementwise ops broadcast by NumPy's rules. Negative axes count
// from the end.
//
// By family: ops/elementwise.h, ops/reductions.h, ops/movement.h, ops/losses.h; here products, layers of networks and
// what fused ops mean. docs/pytorch_to_plumb.md has the names by those of PyTorch.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/movement.h"
#include "autograd/ops/reductions.h"
#include "autograd/tensor.h"
#include "core/backend.h"

namespace plumb {

// ---- products (ops/matmul.cpp, ops/einsum.cpp, ops/linear.cpp)
// ---------------------------------------------------------------------- a [.., M, K] b [.., K, N] -> [.., M, N], each
// transposed in its last two axes first where asked; leading axes broadcast. A vector [K] may stand in a's place or in
// b's, untransposed: the result has no axis for it.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
Tensor dot(const Tensor& a, const Tensor& b);    // [N], [N] -> []: the sum of a b
Tensor outer(const Tensor& a, const Tensor& b);  // [M], [N] -> [M, N]: a_i b_j
// Sums of products by letters, one for each axis: einsum("bhid,bhjd->bhij", q, k). Letters that the result lacks are
// summed over. Without "->" the result has the letters that occur once, in alphabetical order. A letter has one extent
// (1 does not broadcast) and occurs at most once in an operand. Spaces count for nothing; "..." is refused. One
// matmul() and the permutations around it.
Tensor einsum(std::string_view letters, const Tensor& a, const Tensor& b);
// x [.., K], weight [N, K], bias [N] or undefined -> x weight^T + bias [.., N]
//
// While PrecisionScope says bf16 (core/precision.h), linear layers of f32 operands round what they multiply to bf16.
// Their results are f32, or, where `bf16_result` asks for it, bf16 for an op that takes such: these here as x,
// attention_qkv(), cast(). In f32 it asks for nothing.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, bool bf16_result = false);

// The same with its neighbours in one pass over the rows, so that what lies between is neither written nor kept. Equal
// to the ops that they name up to rounding.
struct NormParameters {  // of a layer norm over the last axis: weight, bias [K], eps as layer_norm() takes it
  Tensor weight = {}, bias = {};
  double eps = 1e-6;
};
// gelu(linear(x, ..))
Tensor linear_gelu(const Tensor& x, const Tensor& weight, const Tensor& bias, Gelu form = Gelu::erf,
                   bool bf16_result = false);
// linear(layer_norm(x, ..), ..), and gelu of that
Tensor norm_linear(const Tensor& x, const NormParameters& norm, const Tensor& weight, const Tensor& bias = {},
                   bool bf16_result = false);
Tensor norm_linear_gelu(const Tensor& x, const NormParameters& norm, const Tensor& weight, const Tensor& bias,
                        Gelu form = Gelu::erf, bool bf16_result = false);
// gated_residual(skip, linear(x, ..), gate, row_scale)
Tensor linear_residual(const Tensor& skip, const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                       const Tensor& gate = {}, const Tensor& row_scale = {});

// ---- convolution, pooling and batch norm (ops/conv2d.cpp, ops/pool2d.cpp, ops/batch_norm.cpp)
// --------------------------------------- Cross-correlation, as PyTorch's conv2d: x [B, C, H, W], weight [O, C, kh,
// kw], bias [O] or undefined -> [B, O, H', W'] with H' = floor((H + 2 padding - kh) / stride) + 1; 1 <= stride < 2^31,
// 0 <= padding < 2^31. conv2d(x, w, b, {.stride = 2, .padding = 1})
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dOptions& options = {});
// Over windows of kernel x kernel pixels of x [B, C, H, W], H' as above: max_pool2d(x, {.kernel = 3, .stride = 2,
// .padding = 1}). padding is at most half of the kernel. max: of the pixels in the image; the first of equal ones has
// the gradient, and a NaN is the largest. avg: the sum over the window, whose padding is zeros, divided by kernel^2
// (PyTorch's count_include_pad).
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);
// Mean and variance of each channel of x [B, C, H, W], over (B, H, W): [C] each, the variance divided by B H W
// (biased).
struct BatchStatistics {
  Tensor mean, variance;
};
BatchStatistics batch_statistics(const Tensor& x);
// Batch norm (Ioffe, Szegedy 2015): weight (x - mean) / sqrt(variance + eps) + bias; weight, bias [C]. With the
// statistics of this batch, through which gradients flow (training), or with those given (evaluation, or a caller that
// has them). eps as layer_norm() takes it. Composed: keeps about four arrays of x's size for the backward pass.
Tensor batch_norm2d(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor batch_norm2d(const Tensor& x, const BatchStatistics& statistics, const Tensor& weight, const Tensor& bias,
                    double eps);

// ---- activations and softmax (ops/sigmoid.cpp, ops/gelu.cpp, ops/softmax.cpp)
// ------------------------------------------------------
Tensor sigmoid(const Tensor& x);   // 1 / (1 + e^-x)
Tensor silu(const Tensor& x);      // x sigmoid(x)
Tensor softplus(const Tensor& x);  // log(1 + e^x)
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);
// Of n equal entries, such as zeros, each becomes 1 / n, or -log n.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

// ---- norms (ops/layer_norm.cpp, ops/rms_norm.cpp)
// ---------------------------------------------------------------------------------- The eps of every norm is at least
// `least_eps`: then a row of zeros has a value and finite gradients of order one and two, in f32 too. With an eps of 0
// they would be NaN.
inline constexpr double least_eps = 1e-12;
// Over the last axis: weight (x - mean) / sqrt(var + eps) + bias, var divided by D; weight, bias [D]. A row of zeros
// becomes bias; its gradient is (u - mean(u)) / sqrt(eps), u = weight dy.
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// weight x / sqrt(mean(x^2) + eps); weight [D]. A row of zeros stays zero; its gradient is weight dy / sqrt(eps).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// DyT (Zhu et al. 2025), a norm without statistics: weight tanh(alpha x) + bias; alpha [1], weight, bias [D]
// (ops/dyt.cpp). A row of zeros becomes bias; its gradient is alpha weight dy.
Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);

// ---- attention (ops/attention.cpp)
// -------------------------------------------------------------------------------------------------
struct AttentionOptions {
  double drop_key = 0;  // DropKey: probability that a key is dropped from a query's row, before the softmax, [0, 1]
  double dropout = 0;   // of the probabilities, after the softmax, as dropout() takes it
  EmptyRow empty = EmptyRow::keep_all;  // what a query does that lost every key
  Tensor keep = {};                     // u8, broadcasts to [B, H, N, M]; 1 = key kept
  std::optional<double> scale = {};     // of the scores, at least 0; head_dim^-1/2 if not given
  bool causal = false;  // query n of N has the keys up to n + M - N alone: the last one has all M; no mask is stored
  // DropKey's form, core/drop_key.h. The structured shapes want the grid that the last grid.cells() of the M keys lie
  // on.
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
// The same on a packed projection [B, T, 3 D] (q, k, v, each of `heads` heads side by side) -> [B, T, D]: no head is
// ever moved. qkv may be bf16, then so is the result; scores, softmax and sums are f32.
Tensor attention_qkv(const Tensor& qkv, std::int64_t heads, const AttentionOptions& options = {});

// Talking heads (Shazeer et al. 2020; ops/attention_talking.cpp): x [B, H, N, M], weight [H, H], bias [H] ->
// y_i = sum_j weight_ij x_j + bias_i over the head axis.
Tensor mix_heads(const Tensor& x, const Tensor& weight, const Tensor& bias);
// Attention whose heads are mixed before and after the softmax: A = softmax(mix(scale q k^T)), then mix(A) v, with pre_
// and post_weight [H, H], pre_ and post_bias [H]. DropKey, the keep mask and the policy for empty rows act on the
// scores already mixed, dropout on the mixed probabilities; the draws are attention()'s. A row without keys under
// EmptyRow::zero is 0 in A, the other heads still flow into it. Not fused, as each entry needs all heads: keeps several
// [B, H, N, M] arrays, but no masks (what higher derivatives go through keeps them). pre_bias shifts whole rows, which
// the softmax undoes: its gradient is 0.
Tensor attention_talking(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& pre_weight,
                         const Tensor& pre_bias, const Tensor& post_weight, const Tensor& post_bias,
                         const AttentionOptions& options = {});

// ---- residual branches (ops/dropout.cpp, ops/gated_residual.cpp)
// ------------------------------------------------------------------- Zero with probability p, else x / (1 - p); p in
// [0, 1), rounded to the 16 bits of a draw: one below 2^-17 drops nothing, one above 1 - 2^-16 is refused. Draws depend
// on seed, step, path and element (sample-major). The op knows no modes: nn::Dropout is the layer that eval() turns
// off.
Tensor dropout(const Tensor& x, double p);
// skip + row_scale[sample] * gate * branch: skip, branch [B, .., D]; gate [1] or [D] or undefined; row_scale [B], a
// constant, or undefined.
Tensor gated_residual(const Tensor& skip, const Tensor& branch, const Tensor& gate = {}, const Tensor& row_scale = {});

// ---- what fused ops mean, written in the ops above: their reference in tests, and what is differentiated for higher
// orders ---------
Tensor linear_composed(const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor gelu_composed(const Tensor& x, Gelu form);
Tensor softmax_composed(const Tensor& x);      // last axis
Tensor log_softmax_composed(const Tensor& x);  // last axis
Tensor layer_norm_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor rms_norm_composed(const Tensor& x, const Tensor& weight, double eps);
Tensor dyt_composed(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);
Tensor conv2d_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dOptions& options);
// keep u8 [B, H, N, M], rows without a kept key give 0; multiplier [B, H, N, M] of the probabilities, or undefined.
Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& keep,
                          const Tensor& multiplier);
Tensor cross_entropy_composed(const Tensor& logits, const Tensor& target);
Tensor gated_residual_composed(const Tensor& skip, const Tensor& branch, const Tensor& gate, const Tensor& row_scale);

namespace detail {
// For an operand that must be there: "[op] expected a tensor, got an undefined tensor (..)".
inline void check_defined(const char* op, const Tensor& x) { check(x.defined(), "[{}] {}", op, expected_a_tensor); }
void check_alike(const char* op, const Tensor& a, const Tensor& b);     // both defined, same dtype, same device
void check_operands(const char* op, const Tensor& a, const Tensor& b);  // the same, and floating
void check_float(const char* op, const Tensor& x);
void check_eps(const char* op, double eps);                      // of a norm: finite, at least least_eps
int checked_axis(const char* op, const Shape& shape, int axis);  // as a non-negative index
// i64, on x's device, within the axis's extent where it can be known without waiting (numbers_to_check, node.h)
void check_indices(const char* op, const Tensor& x, int axis, const Tensor& index);
void check_logits(const char* op, const Tensor& logits);                        // floating [.., C], not empty
void check_labels(const char* op, const Tensor& logits, const Tensor& labels);  // i64 [..] in 0..C - 1
// Operands of the residual junction, where the branch has this shape.
void check_junction(const char* op, const Tensor& skip, const Shape& branch, const Tensor& gate,
                    const Tensor& row_scale);
}  // namespace detail

}  // namespace plumb
