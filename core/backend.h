// A backend is one plain table of kernels. Kernels get contiguous arrays whose shapes and dtypes the op has checked, outputs
// allocated, and only compute; nothing here throws for the user's mistakes.
//
// Notation: x [R, D] means any array whose last axis is D, seen as R rows. An undefined Array is an operand that is not there or a
// result that nobody wants. All floating operands of a call have one dtype, f32 or f64; the result is written, not added to, unless said.
//
// bf16 stands between fused ops where a kernel says so, and then all its other floating operands are f32. It is read exactly, nothing is
// computed in it, and results are rounded to it once, to the nearest, ties to even. The movement kernels, fill and cast take it as any dtype.
#pragma once

#include <array>
#include <span>

#include "core/array.h"
#include "core/drop_key.h"
#include "core/precision.h"
#include "core/random.h"

namespace plumb {

enum class Unary {
  exp,
  log,
  tanh,
  erf,
  sqrt,
  rsqrt,
  relu,
  step,  // x > 0 ? 1 : 0
  abs,
  sign,      // -1, 0 or 1; NaN for NaN
  log1p,     // log(1 + x), accurate for small x too
  sigmoid,   // 1 / (1 + e^-x), accurate at both ends
  pow,       // x^parameter
  multiply,  // x * parameter
  add        // x + parameter
};
enum class Binary { add, subtract, multiply, divide, equal, less, less_equal };  // comparisons: 1 where a == b, a < b, a <= b, else 0
enum class Reduce { sum, max };
enum class Gelu { erf, tanh };  // x Phi(x), or its tanh approximation

// Where heads lie in a buffer: element (b, h, t, i) is at offset + b*batch + h*head + t*token + i. Serves both [B, H, T, hd] and the
// packed product of a qkv projection [B, T, 3, H, hd].
struct Heads {
  Array array;
  std::int64_t offset, batch, head, token;
};

// Attention dropout; probability 0 draws nothing.
struct AttentionDrop {
  std::uint32_t threshold = 0;  // round(65536 p)
  std::uint64_t key = 0;
};

struct AttentionCall {
  std::int64_t batch, heads, queries, keys, head_dim;
  double scale;           // of the scores, head_dim^-1/2
  Array keep;             // u8 [B, H, N, M], 1 = key kept; undefined: all
  KeyDrop drop_key;       // before the softmax, survivors are renormalised by it
  AttentionDrop dropout;  // after the softmax, survivors are scaled by 1 / (1 - p)
  EmptyRow empty = EmptyRow::keep_all;
  std::uint32_t step = 0, first_sample = 0;
};

// Of a 2-d convolution, the same along both axes: x is padded with `padding` zeros on each side, the filter moves by `stride`.
struct Conv2dOptions {
  std::int64_t stride = 1, padding = 0;
  // Extent of the output, where the input has `extent` and the filter `kernel`.
  std::int64_t output(std::int64_t extent, std::int64_t kernel) const { return (extent + 2 * padding - kernel) / stride + 1; }
};

// What stands before and after the product of a linear layer, y = after(before(x) w^T + b), so that one pass over the rows does it all.
struct LinearCall {
  // Before: layer norm over the last axis, if gamma is defined. mean, rstd [R] are written by forward and read by backward.
  Array gamma = {}, beta = {};
  double eps = 0;
  Array mean = {}, rstd = {};
  // After: with u = before(x) w^T + b, y = u, gelu(u), or skip + row_scale[sample] gate u.
  enum class After { nothing, gelu, residual } after = After::nothing;
  Gelu gelu = Gelu::erf;
  Array slope = {};      // gelu'(u) [R, N]: written by forward where defined, read by backward
  Array skip = {};       // [R, N]
  Array gate = {};       // [1] or [N]; undefined: 1
  Array row_scale = {};  // [B], of R / B rows each; undefined: 1
  // bf16: the operands of the products are rounded to it, sums stay f32. x, y, slope, dy and dx may then be bf16; x with a norm before it, and
  // y and dy of a junction, are f32. Weights and their gradients are f32 always.
  Precision products = Precision::f32;
};
// Its gradients; what is undefined is not wanted. (That of the skip is dy.)
struct LinearGradients {
  Array dx = {};
  bool add_to_dx = false;  // dx holds a gradient already, to which this one is added
  Array dw = {}, db = {}, dgamma = {}, dbeta = {}, dgate = {};
};

struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  double correction1, correction2;  // 1 - beta^t
  double gradient_scale;            // global-norm clipping
};

struct AdamWUpdate {
  AdamWStep step;
  Array gradient, parameter, moment1, moment2;
};

struct SgdStep {
  double lr, momentum, weight_decay;
  bool nesterov;
  double gradient_scale;
};

struct AdagradStep {
  double lr, eps, weight_decay;
  double gradient_scale;
};

struct Kernels {
  void (*fill)(double value, const Array& y);
  void (*cast)(const Array& x, const Array& y);  // same shape, any dtypes

  // Elementwise; y has the shape that the operands broadcast to. bf16 in binary: a, b and y.
  void (*unary)(Unary op, double parameter, const Array& x, const Array& y);
  void (*binary)(Binary op, const Array& a, const Array& b, const Array& y);
  void (*where)(const Array& mask, const Array& a, const Array& b, const Array& y);  // mask u8: a where not 0, else b
  void (*broadcast)(const Array& x, const Array& y);

  // y's shape is x's with each reduced axis 1.
  void (*reduce)(Reduce op, const Array& x, const Array& y);

  // y = op(a) op(b) over the last two axes, transposed where asked; leading axes broadcast.
  void (*matmul)(const Array& a, bool transpose_a, const Array& b, bool transpose_b, const Array& y);

  // Movement, any dtype. permute: axis i of y is axis axes[i] of x. slice: y = x[.., start : start + y.dim(axis), ..].
  // assign_slice: y[.., start : start + x.dim(axis), ..] = x. gather: y[i..] = x[index[i..], ..]; scatter_add: y[index[i..], ..] += x[i..].
  void (*permute)(const Array& x, std::span<const int> axes, const Array& y);
  void (*slice)(const Array& x, int axis, std::int64_t start, const Array& y);
  void (*assign_slice)(const Array& x, int axis, std::int64_t start, const Array& y);
  void (*gather)(const Array& x, const Array& index, const Array& y);
  void (*scatter_add)(const Array& x, const Array& index, const Array& y);

  // x [R, K], w [N, K], b [N] or undefined, y [R, N]. Backward, with du the gradient of u = before(x) w^T + b: dw = du^T before(x),
  // db = column sums of du, and du w goes on to x.
  void (*linear_forward)(const LinearCall& call, const Array& x, const Array& w, const Array& b, const Array& y);
  void (*linear_backward)(const LinearCall& call, const Array& dy, const Array& x, const Array& w, const Array& b, const LinearGradients& gradients);

  // Cross-correlation: x [B, C, H, W], w [O, C, kh, kw], b [O] or undefined, y [B, O, H', W'], extents by Conv2dOptions.
  void (*conv2d_forward)(const Array& x, const Array& w, const Array& b, const Conv2dOptions& options, const Array& y);
  void (*conv2d_backward)(const Array& dy, const Array& x, const Array& w, const Conv2dOptions& options, const Array& dx, const Array& dw,
                          const Array& db);

  // y = gelu(x + b), b [D] or undefined; dgelu = gelu'(x + b) where wanted; y or dgelu may be x itself.
  void (*gelu_forward)(Gelu form, const Array& x, const Array& b, const Array& y, const Array& dgelu);

  // Over the last axis. softmax: dx = y (dy - sum(y dy)); log_softmax: dx = dy - exp(y) sum(dy).
  void (*softmax_forward)(const Array& x, const Array& y);
  void (*softmax_backward)(const Array& dy, const Array& y, const Array& dx);
  void (*log_softmax_forward)(const Array& x, const Array& y);
  void (*log_softmax_backward)(const Array& dy, const Array& y, const Array& dx);

  // x [R, D], gamma, beta [D], mean, rstd [R]. Variance by two passes, divided by D.
  void (*layer_norm_forward)(const Array& x, const Array& gamma, const Array& beta, double eps, const Array& y, const Array& mean, const Array& rstd);
  void (*layer_norm_backward)(const Array& dy, const Array& x, const Array& gamma, const Array& mean, const Array& rstd, const Array& dx,
                              const Array& dgamma, const Array& dbeta);
  // y = gamma x / sqrt(mean(x^2) + eps)
  void (*rms_norm_forward)(const Array& x, const Array& gamma, double eps, const Array& y, const Array& rstd);
  void (*rms_norm_backward)(const Array& dy, const Array& x, const Array& gamma, const Array& rstd, const Array& dx, const Array& dgamma);
  // y = gamma tanh(alpha x) + beta, alpha [1], gamma, beta [D]. Backward, t = tanh(alpha x), u = gamma dy (1 - t^2): dx = alpha u,
  // dalpha = sum u x, dgamma = sum dy t, dbeta = sum dy.
  void (*dyt_forward)(const Array& x, const Array& alpha, const Array& gamma, const Array& beta, const Array& y);
  void (*dyt_backward)(const Array& dy, const Array& x, const Array& alpha, const Array& gamma, const Array& dx, const Array& dalpha,
                       const Array& dgamma, const Array& dbeta);

  // out = softmax(scale q k^T) v per (sample, head). sums [B, H, N, 2] is what the backward pass needs to make the probabilities again, so that
  // no N x M array is kept: each row's largest q.k and its sum of exponentials relative to that. (The logarithm of the sum, one number,
  // would round away what tells large scores apart.) bf16: all of q, k, v, out and their gradients.
  void (*attention_forward)(const AttentionCall& call, const Heads& q, const Heads& k, const Heads& v, const Heads& out, const Array& sums);
  void (*attention_backward)(const AttentionCall& call, const Heads& dout, const Heads& q, const Heads& k, const Heads& v, const Array& sums,
                             const Heads& dq, const Heads& dk, const Heads& dv);

  // Mean over R rows of -sum_c t_c log_softmax(x)_c, t = (1 - smoothing) onehot(label) + smoothing / C, or `target` [R, C].
  // loss is a scalar, lse [R]. Backward: dx = dloss (softmax(x) sum(t) - t) / R.
  void (*cross_entropy_forward)(const Array& x, const Array& labels, const Array& target, double smoothing, const Array& loss, const Array& lse);
  void (*cross_entropy_backward)(const Array& dloss, const Array& x, const Array& labels, const Array& target, double smoothing, const Array& lse,
                                 const Array& dx);

  // y = x / (1 - p) where element_draw keeps the element, else 0; p = threshold / 65536.
  void (*dropout)(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first_element, const Array& y);

  // y = skip + row_scale[sample] * gate * branch; x [B, .., D], gate [1] or [D] or undefined (1), row_scale [B] or undefined (1).
  void (*gated_residual_forward)(const Array& skip, const Array& branch, const Array& gate, const Array& row_scale, const Array& y);
  void (*gated_residual_backward)(const Array& dy, const Array& branch, const Array& gate, const Array& row_scale, const Array& dbranch,
                                  const Array& dgate);

  // Optimisers, in place. All parameters of a step at once, most of which are small.
  void (*adamw)(std::span<const AdamWUpdate> updates);
  void (*sgd)(const SgdStep& s, const Array& gradient, const Array& parameter, const Array& velocity);  // velocity undefined: no momentum
  void (*adagrad)(const AdagradStep& s, const Array& gradient, const Array& parameter, const Array& squares);
  double (*sum_of_squares)(std::span<const Array> arrays);  // of all their elements; accumulated in f64, fixed order; may be bf16
};

// The tables, defined in backends/. Everything above core reaches kernels through these alone.
const Kernels& reference_kernels();
const Kernels& cpu_kernels();

namespace detail {
inline thread_local bool profiling = false;      // a Profile of this thread lives (core/profile.h)
const Kernels& profiled_kernels(Device device);  // the same kernels, each call recorded
}  // namespace detail

inline const Kernels& kernels(Device device) {
  if (detail::profiling) return detail::profiled_kernels(device);
  return device == Device::cpu ? cpu_kernels() : reference_kernels();
}
inline const Kernels& kernels(const Array& a) { return kernels(a.device()); }

inline double sum_of_squares(const Array& a) { return kernels(a).sum_of_squares({&a, 1}); }

// Threads that the cpu backend uses, the calling one among them; 0 means all processors that the process may run on, whatever OMP_NUM_THREADS says.
// Their waiting needs no settings (docs/numerics.md: "Threads that wait").
void set_num_threads(int n);
int num_threads();
// The same seed on the same number of threads gives the same bits, always. Strict: on any number of threads (of one instruction set), at the cost
// of some weight gradients' blocks that suit no number of threads best.
void set_strict_determinism(bool on);
bool strict_determinism();
// How the cpu backend multiplies operands in bf16: by the processor's instructions for it where they are faster than those for f32, else by those.
// Rounding is the same everywhere; only the order of sums differs. It is looked up in a table of processors, never timed, so that it is the same in
// each run. ONEDNN_MAX_CPU_ISA, with which oneDNN can be told to do without some instructions, is respected.
struct Bf16Products {
  const char* instructions;  // "AMX", "AVX-512 bf16" or "f32 instructions"
  bool faster_than_f32;
};
const Bf16Products& bf16_products();
// One line for logs: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3".
std::string cpu_description();

}  // namespace plumb
