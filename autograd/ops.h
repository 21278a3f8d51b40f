// The ops on tensors. This file has products, convolution, layers of networks, attention and the definitions of fused
// ops; the other ops are in ops/elementwise.h, ops/reductions.h, ops/movement.h and ops/losses.h.
//
// Every op checks its operands and throws Error "[op] expected ..., got ..." for a wrong shape, dtype or device. Unless
// a comment says otherwise, operands are f32 or f64, and the operands of one call share dtype and device. Every op has
// derivatives of any order. Elementwise ops broadcast by NumPy's rules. Negative axes count from the end.
// docs/pytorch_to_plumb.md lists the PyTorch names of the ops.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "autograd/ops/elementwise.h"
#include "autograd/ops/losses.h"
#include "autograd/ops/movement.h"
#include "autograd/ops/reductions.h"
#include "autograd/tensor.h"
#include "core/op_options.h"

namespace plumb {

// ---- products (ops/matmul.cpp, ops/einsum.cpp, ops/linear.cpp)

// Matrix product over the last two axes: a [.., M, K], b [.., K, N] -> [.., M, N]. transpose_a and transpose_b first
// transpose the last two axes of an operand. Leading axes broadcast. Either operand may be a vector [K], which cannot
// be transposed; the result then has no axis for the vector.
Tensor matmul(const Tensor& a, const Tensor& b, bool transpose_a = false, bool transpose_b = false);
// Inner product of two vectors: [N], [N] -> [], the sum of a_i b_i.
Tensor dot(const Tensor& a, const Tensor& b);
// Outer product of two vectors: [M], [N] -> [M, N], a_i b_j.
Tensor outer(const Tensor& a, const Tensor& b);
// Sum of products in index notation, one letter for each axis: einsum("bhid,bhjd->bhij", q, k). Letters that are
// missing in the result are summed over. Without "->", the result has the letters that occur once, in alphabetical
// order. A letter stands for one extent (1 does not broadcast) and occurs at most once in each operand. Spaces are
// ignored. Throws Error for "...". The computation is one matmul(), with permutations before and after.
Tensor einsum(std::string_view letters, const Tensor& a, const Tensor& b);
// Linear layer: x [.., K], weight [N, K], bias [N] or undefined -> x weight^T + bias [.., N].
//
// While a PrecisionScope is set to bf16 (core/precision.h), the operands of the product are rounded to bf16 if they are
// f32.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {});

// ---- convolution, pooling and batch norm (ops/conv2d.cpp, ops/pool2d.cpp, ops/batch_norm.cpp)

// 2-d cross-correlation, like PyTorch's conv2d: x [B, C, H, W], weight [O, C, kh, kw], bias [O] or undefined ->
// [B, O, H', W'] with H' = floor((H + 2 padding - kh) / stride) + 1, and W' likewise. Throws Error unless
// 1 <= stride < 2^31, 0 <= padding < 2^31, and the padded image is at least as large as the filter.
//   conv2d(x, w, b, {.stride = 2, .padding = 1})
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {}, const Conv2dGeometry& options = {});
// Pooling over windows of kernel x kernel pixels: x [B, C, H, W] -> [B, C, H', W'], with H' and W' as for conv2d.
// padding is at most half of the kernel. max_pool2d takes the largest pixel of the image in each window; the first of
// equal pixels gets the gradient, and a NaN counts as the largest. avg_pool2d divides the sum over the window by
// kernel^2; padding counts as zeros (PyTorch's count_include_pad).
//   max_pool2d(x, {.kernel = 3, .stride = 2, .padding = 1})
Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options);
Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options);
// Returns the mean and the variance of each channel of x [B, C, H, W] over (B, H, W), [C] each. The variance is divided
// by B H W (biased).
std::pair<Tensor, Tensor> batch_statistics(const Tensor& x);
// Batch norm (Ioffe, Szegedy 2015) of x [B, C, H, W]: weight (x - mean) / sqrt(variance + eps) + bias; weight and bias
// [C]. The first function uses the statistics of this batch, and gradients flow through them (training). The second
// function uses the given statistics (evaluation). The smallest eps is that of layer_norm(). The function is composed
// of other ops, which keep about four arrays of the size of x for the backward pass.
Tensor batch_norm2d(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor batch_norm2d(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                    const Tensor& bias, double eps);

// ---- activations and softmax (ops/sigmoid.cpp, ops/gelu.cpp, ops/softmax.cpp)

// Elementwise: 1 / (1 + e^-x).
Tensor sigmoid(const Tensor& x);
// Elementwise: x sigmoid(x).
Tensor silu(const Tensor& x);
// Elementwise: log(1 + e^x), without overflow.
Tensor softplus(const Tensor& x);
// Elementwise: x Phi(x), with Phi the normal distribution function by erf, or the tanh approximation.
Tensor gelu(const Tensor& x, Gelu form = Gelu::erf);
// softmax along an axis, and its logarithm. n equal entries, such as zeros, give 1 / n each, or -log n. Throws Error if
// the axis is empty.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);

// ---- norms (ops/layer_norm.cpp, ops/rms_norm.cpp, ops/dyt.cpp)

// The smallest eps of a norm; a smaller eps throws Error. With at least this eps, a row of zeros has a value and finite
// gradients of first and second order, even in f32. With eps = 0, the gradients would be NaN.
inline constexpr double least_eps = 1e-12;
// Layer norm over the last axis of x [.., D]: weight (x - mean) / sqrt(var + eps) + bias; weight and bias [D]. The
// variance is divided by D. A row of zeros becomes bias, and with u = weight dy its gradient is
// (u - mean(u)) / sqrt(eps).
Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
// RMS norm over the last axis of x [.., D]: weight x / sqrt(mean(x^2) + eps); weight [D]. A row of zeros stays zero,
// and its gradient is weight dy / sqrt(eps).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// DyT (Zhu et al. 2025), a replacement of norms without statistics: weight tanh(alpha x) + bias for x [.., D]; alpha
// [1], weight and bias [D]. A row of zeros becomes bias, and its gradient is alpha weight dy.
Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);

// ---- attention (ops/attention.cpp, ops/attention_talking.cpp)

// The masks and drops of attention for N queries and M keys, and the factor of its scores.
struct AttentionMasking {
  double drop_key = 0;  // probability in [0, 1] that DropKey drops a key of a query's row, before the softmax
  double dropout = 0;   // dropout probability of the attention probabilities, after the softmax; as in dropout()
  EmptyRow empty = EmptyRow::keep_all;  // result for a query that lost every allowed key to DropKey
  Tensor keep = {};                     // mask u8 that broadcasts to [B, H, N, M]; 1 = key kept
  std::optional<double> scale = {};     // factor of the scores, at least 0; head_dim^-1/2 by default
  // Whether query n sees only the keys 0 .. n + M - N, so that the last query sees all M keys. No mask is stored.
  bool causal = false;
  // The form of DropKey (core/drop_key.h). The shapes block and cross require the grid of patches, which are the last
  // grid.cells() of the M keys.
  DropShape drop_shape = DropShape::plain;
  std::int64_t drop_window = 0;  // extent of the window; 0 means the default of the shape
  DropSharing drop_sharing = DropSharing::per_entry;
  KeyGrid grid = {};
};
// Attention: q [B, H, N, E], k and v [B, H, M, E] -> softmax(scale q k^T) v [B, H, N, E]. Random draws depend on seed,
// step and the current module path. A query of zeros gives every key the same weight. The result depends only on the
// keys that `keep` and `causal` allow. For a query without an allowed key, the result is 0, and no gradient flows. If
// DropKey drops all allowed keys of a query, the result depends on options.empty:
//   keep_all  the result without DropKey
//   zero      0, and no gradient flows
//   paper     the mean of the rows of v of the allowed keys; gradients flow only to v
Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionMasking& options = {});
// Attention on a packed projection qkv [B, T, 3 D] (q, k, v side by side, each with `heads` heads side by side) ->
// [B, T, D]. No head is copied. qkv may be bf16; the result is then bf16, and scores, softmax and sums are f32.
Tensor attention_qkv(const Tensor& qkv, std::int64_t heads, const AttentionMasking& options = {});
// Attention of queries q [B, N, D] to a packed projection kv [B, M, 2 D] (k, v side by side), with the rules of
// attention_qkv() -> [B, N, D].
Tensor attention_q_kv(const Tensor& q, const Tensor& kv, std::int64_t heads, const AttentionMasking& options = {});

// Mixes heads, as in talking heads (Shazeer et al. 2020): x [B, H, N, M], weight [H, H], bias [H] ->
// y_i = sum_j weight_ij x_j + bias_i over the head axis.
Tensor mix_heads(const Tensor& x, const Tensor& weight, const Tensor& bias);
// Attention that mixes heads before and after the softmax (talking heads, Shazeer et al. 2020):
//   A = softmax(mix(scale q k^T)), result mix(A) v
// pre_weight and post_weight are [H, H], pre_bias and post_bias [H]. DropKey, the keep mask and the policy for empty
// rows act on the mixed scores; dropout acts on the mixed probabilities. The random draws are the same as in
// attention(). A row without keys may be 0 in A (see attention()), but the other heads still contribute to its result.
// pre_bias shifts whole rows, which does not change the softmax: its gradient is 0.
//
// The op is not fused, because each entry needs all heads. The op keeps several [B, H, N, M] arrays for the backward
// pass, but no masks; derivatives of higher order keep masks too.
Tensor attention_talking(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& pre_weight,
                         const Tensor& pre_bias, const Tensor& post_weight, const Tensor& post_bias,
                         const AttentionMasking& options = {});

// ---- residual branches (ops/dropout.cpp, ops/gated_residual.cpp)

// Dropout: each element is 0 with probability p, else x / (1 - p). p in [0, 1) is rounded to the 16 bits of a draw:
// p below 2^-17 drops nothing, and p that rounds to 1 throws Error. Draws depend on seed, step, module path and
// element (sample-major). x may be bf16; the result is then f32. Throws Error if p > 0 and no RandomScope is open. The
// op always drops; nn::Dropout is the layer that eval() turns off.
Tensor dropout(const Tensor& x, double p);
// Residual sum: skip + row_scale[sample] * gate * branch. skip and branch [B, .., D]; gate [1], [D] or undefined;
// row_scale [B], a constant, or undefined. For images [B, C, H, W], a gate with one number per channel is [C, 1, 1].
Tensor gated_residual(const Tensor& skip, const Tensor& branch, const Tensor& gate = {}, const Tensor& row_scale = {});

// ---- definitions of fused ops (for tests and derivatives)

// Definitions of linear() and gelu() in terms of other ops. Tests compare a fused op with its definition, and most
// derivatives of higher order go through it.
Tensor linear_composed(const Tensor& x, const Tensor& weight, const Tensor& bias);
Tensor gelu_composed(const Tensor& x, Gelu form);
// Definitions of softmax() and log_softmax() over the last axis.
Tensor softmax_composed(const Tensor& x);
Tensor log_softmax_composed(const Tensor& x);
// Definitions of layer_norm(), rms_norm(), dyt() and conv2d(). Each function has the parameters of the op that it
// defines.
Tensor layer_norm_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);
Tensor rms_norm_composed(const Tensor& x, const Tensor& weight, double eps);
Tensor dyt_composed(const Tensor& x, const Tensor& alpha, const Tensor& weight, const Tensor& bias);
Tensor conv2d_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dGeometry& options);
// Definition of attention() with its masks given: `keep` is u8 [B, H, N, M], and a row without a kept key gives 0. If
// `multiplier` [B, H, N, M] is defined, it multiplies the probabilities.
Tensor attention_composed(const Tensor& q, const Tensor& k, const Tensor& v, double scale, const Tensor& keep,
                          const Tensor& multiplier);
// Definitions of soft_cross_entropy() (logits and target [.., C]) and of gated_residual().
Tensor cross_entropy_composed(const Tensor& logits, const Tensor& target);
Tensor gated_residual_composed(const Tensor& skip, const Tensor& branch, const Tensor& gate, const Tensor& row_scale);

namespace detail {
// Throws Error "[op] expected a tensor, got an undefined tensor (..)" if x is undefined.
inline void check_defined(const char* op, const Tensor& x) { check(x.defined(), "[{}] {}", op, expected_a_tensor); }
// Throws Error unless both tensors are defined and share dtype and device.
void check_alike(const char* op, const Tensor& a, const Tensor& b);
// Throws Error unless both tensors are f32 or f64 and share dtype and device.
void check_operands(const char* op, const Tensor& a, const Tensor& b);
// Throws Error unless x is f32 or f64.
void check_float(const char* op, const Tensor& x);
// Throws Error unless eps is finite and at least least_eps.
void check_eps(const char* op, double eps);
// Returns the axis as a non-negative index. Throws Error if it is out of range.
int checked_axis(const char* op, const Shape& shape, int axis);
// Throws Error unless index is i64 on the device of x. Throws Error for an index out of range of the axis, if the check
// needs no waiting (numbers_to_check in autograd/node.h).
void check_indices(const char* op, const Tensor& x, int axis, const Tensor& index);
// Throws Error unless logits are f32 or f64, [.., C], with at least one element.
void check_logits(const char* op, const Tensor& logits);
// Throws Error unless labels are i64 [..] on the device of logits [.., C], with values in 0..C - 1.
void check_labels(const char* op, const Tensor& logits, const Tensor& labels);
// Throws Error if an op would return more than 2^20 tensors. A tensor without elements can have any number of parts.
void check_parts(const char* op, std::int64_t count);
// Returns x [.., D] as [rows, D]. D may be 0.
Tensor as_matrix(const Tensor& x);
// Throws Error unless the operands fit a residual sum whose branch has this shape.
void check_junction(const char* op, const Tensor& skip, const Shape& branch, const Tensor& gate,
                    const Tensor& row_scale);
}  // namespace detail

}  // namespace plumb
