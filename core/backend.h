// The interface between ops and backends: the table of kernels (listed in core/kernels.def), the argument structs of
// the kernels, and the settings of the cpu backend.
//
// A backend is one plain table of function pointers. An op checks shapes and dtypes and allocates the results before it
// calls a kernel; all arrays are contiguous. Kernels only compute and never throw for a user's mistake. The tables
// leave out calls whose results have no elements (backends/with_results.h). A kernel must accept operands without
// elements.
//
// Notation: x [R, D] means any array whose last axis is D, seen as R rows. An undefined Array is an absent operand, an
// undefined Out an unwanted result. Unless a kernel's comment says otherwise, all floating operands of a call have one
// dtype, f32 or f64, and the kernel overwrites its result instead of adding to it.
//
// bf16 is a storage type between fused ops. A kernel takes bf16 operands only if the comment of the kernel names them;
// all other floating operands of the call are then f32. Kernels read bf16 exactly, do no arithmetic in bf16, and round
// each result to bf16 once, to the nearest, ties to even. The movement kernels, fill and cast accept bf16 like any
// dtype.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "core/array.h"
#include "core/drop_key.h"
#include "core/precision.h"
#include "core/random.h"

namespace plumb {

// Returns the number of consecutive elements of x that share an element of the gate of gated_residual(): 1 for a gate
// [D], H W for a gate [C, 1, 1] of images [B, C, H, W].
inline std::int64_t elements_per_gate(const Array& gate, const Shape& x) {
  std::int64_t count = 1;
  for (int axis = 1; axis < (gate.defined() ? gate.shape().rank() : 0); ++axis) count *= x[-axis];
  return count;
}

// Elementwise functions of one operand x. `parameter` is the number in the kernel's call.
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
  sign,   // -1, 0 or 1; NaN for NaN
  log1p,  // log(1 + x), accurate for small x too
  sin,
  cos,
  expm1,  // e^x - 1, accurate for small x too
  floor,
  round,     // to the nearest integer, ties to even
  sigmoid,   // 1 / (1 + e^-x), accurate at both ends
  pow,       // x^parameter
  multiply,  // x * parameter
  add        // x + parameter
};
// Elementwise functions of two operands a and b. The comparisons give 1 if a == b, a < b or a <= b holds, else 0.
// maximum and minimum give NaN if an operand is NaN. pow is a^b.
enum class Binary { add, subtract, multiply, divide, equal, less, less_equal, maximum, minimum, pow };
// Reductions over axes.
enum class Reduce { sum, max };

// The layout of attention heads in a buffer: element (b, h, t, i) is at index offset + b*batch + h*head + t*token + i.
// This layout describes both [B, H, T, hd] and the packed result of a qkv projection [B, T, 3, H, hd].
template <class A>
struct HeadsOf {
  A array;
  std::int64_t offset, batch, head, token;
};
using Heads = HeadsOf<Array>;   // read by a kernel
using HeadsOut = HeadsOf<Out>;  // written by a kernel

// The dropout of an attention call. With threshold 0 nothing is drawn.
struct AttentionDrop {
  std::uint32_t threshold = 0;   // round(65536 p) for the drop probability p
  std::uint64_t random_key = 0;  // random_key(seed, path)
};

// The extents, masks and draws of an attention call.
struct AttentionCall {
  std::int64_t batch, heads, queries, keys, head_dim;
  double scale;           // factor of the scores; head_dim^-1/2 by default in attention()
  Array keep;             // u8 [B, H, N, M], 1 = key kept; all keys are kept if undefined
  bool causal = false;    // whether query n sees only the keys up to last_key(n)
  KeyMask drop_key;       // applied before the softmax, which renormalises the remaining keys
  AttentionDrop dropout;  // applied after the softmax; kept probabilities are multiplied by 1 / (1 - p)
  EmptyRow empty = EmptyRow::keep_all;
  std::uint32_t step = 0, first_sample = 0;

  // The index of the last key that query n sees: the last query sees all M keys, the query before the last sees M - 1
  // keys. -1 means that the query sees no key.
  std::int64_t last_key(std::int64_t n) const {
    return causal ? std::max<std::int64_t>(n + keys - queries, -1) : keys - 1;
  }
};

// The steps around the product of a linear layer, y = after(before(x) w^T + b). These steps are part of the call, so
// that one pass over the rows computes everything.
struct LinearCall {
  // If gamma is defined, a layer norm over the last axis precedes the product.
  Array gamma = {}, beta = {};
  double eps = 0;
  // After the product, with u = before(x) w^T + b: y = u, gelu(u), or skip + row_scale[sample] gate u.
  enum class After { nothing, gelu, residual } after = After::nothing;
  Gelu gelu = Gelu::erf;
  Array skip = {};       // [R, N]
  Array gate = {};       // [1] or [N]; 1 if undefined
  Array row_scale = {};  // [B], one factor for each R / B rows; 1 if undefined
  // Precision::bf16 rounds the operands of the products to bf16 and keeps sums in f32. Then x, y, slope, dy and dx may
  // be bf16, with two exceptions that are f32: x if a norm precedes the product, and y and dy of a residual sum. slope
  // has the dtype of y.
  // Weights and their gradients are always f32.
  Precision products = Precision::f32;
};
// Arrays that linear_forward writes for linear_backward: the mean and 1 / standard deviation of each row [R] if a norm
// precedes the product, and slope = gelu'(u) [R, N]. linear_forward does not write an undefined slope.
template <class A>
struct LinearKeptOf {
  A mean = {}, rstd = {}, slope = {};
};
using LinearKept = LinearKeptOf<Array>;   // read by linear_backward
using LinearKeptOut = LinearKeptOf<Out>;  // written by linear_forward
// The gradients that linear_backward writes; an undefined gradient is not computed. The gradient of `skip` is dy.
struct LinearGradients {
  Out dx = {};
  bool add_to_dx = false;  // whether the gradient is added to the contents of dx
  Out dw = {}, db = {}, dgamma = {}, dbeta = {}, dgate = {};
};

// The settings of one AdamW or LAMB step.
struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  double correction1, correction2;  // 1 - beta1^t and 1 - beta2^t
};
// One parameter's part of an AdamW or LAMB step. The moments and the parameter are updated in place.
struct AdamWUpdate {
  AdamWStep step;
  Array gradient;
  Out parameter, moment1, moment2;
};

// The settings of one SGD step.
struct SgdStep {
  double lr, momentum, weight_decay;
  bool nesterov;
};
// One parameter's part of an SGD step.
struct SgdUpdate {
  SgdStep step;
  Array gradient;
  Out parameter, velocity;  // velocity is undefined without momentum
};

// The settings of one Adagrad step.
struct AdagradStep {
  double lr, eps, weight_decay;
};
// One parameter's part of an Adagrad step; `squares` is the sum of squared gradients.
struct AdagradUpdate {
  AdagradStep step;
  Array gradient;
  Out parameter, squares;
};

// One parameter's part of an update of exponential moving averages.
struct EmaUpdate {
  Array value;
  Out average;
};

// Four numbers about a training step. Kernels hold these numbers as an f64 array [4] in this order, on the device of
// the loss and the gradients.
struct StepState {
  double scale = 1;    // factor of each gradient, which clips by the global norm
  double goes_on = 1;  // 1, or 0 from the first step with a loss or gradient norm that is not finite
  double loss = 0, squared_norm = 0;

  // Reads the numbers from an array in host memory. An undefined array gives the default values, which do not clip.
  static StepState of(const Array& state) {
    if (!state.defined()) return {};
    const double* const s = state.data<double>();
    return {s[0], s[1], s[2], s[3]};
  }
};

// The table of a backend: one function pointer for each kernel of core/kernels.def.
struct Kernels {
// Declares the pointer to one kernel.
#define PLUMB_KERNEL(dtypes, name, parameters) void(*name) parameters;
#include "core/kernels.def"
};

// The tables of the backends, defined in backends/. Layers above core call kernels only through these tables.
// cuda_kernels() throws Error with the text of why_no_cuda() if no device can be used.
const Kernels& reference_kernels();
const Kernels& cpu_kernels();
const Kernels& cuda_kernels();

namespace detail {
inline const Kernels& kernels_of(Device device) {
  return device == Device::cpu ? cpu_kernels() : device == Device::reference ? reference_kernels() : cuda_kernels();
}
inline thread_local bool profiling = false;      // whether a Profile of this thread records (core/profile.h)
const Kernels& profiled_kernels(Device device);  // the kernels of the device; each call is recorded
}  // namespace detail

// The kernels of a device, or of the device that `a` is on. While a Profile records, each call is timed.
// Throws Error like cuda_kernels().
inline const Kernels& kernels(Device device) {
  return detail::profiling ? detail::profiled_kernels(device) : detail::kernels_of(device);
}
inline const Kernels& kernels(const Array& a) { return kernels(a.device()); }

// The sum of squares of all elements of these arrays, which are on one device; waits for the result. Throws Error if
// there is no array.
double sum_of_squares(std::span<const Array> arrays);
inline double sum_of_squares(const Array& a) { return sum_of_squares(std::span(&a, 1)); }

// The instructions with which the cpu backend multiplies bf16 operands: the CPU's bf16 instructions if they are faster
// than those for f32, else the f32 instructions. In linear layers, both kinds of instructions round the same way,
// except that denormal numbers become 0 on a CPU with AMX; the order of sums differs. With AMX, attention also
// multiplies in bf16 (docs/numerics.md). The choice comes from a table of CPUs and not from a measurement, so that the
// choice is the same in every run. The environment variable ONEDNN_MAX_CPU_ISA, which limits the instructions that
// oneDNN uses, is respected.
struct Bf16Products {
  const char* instructions;  // "AMX", "AVX-512 bf16", "f32 instructions" (and why)
  bool faster_than_f32;
};
// The instructions for bf16 products of this process.
const Bf16Products& bf16_products();
// One line for logs: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3".
std::string cpu_description();
// One line for logs: "NVIDIA H100 80GB HBM3, compute capability 9.0". Throws Error with the
// text of why_no_cuda() if no device can be used.
std::string cuda_description();

}  // namespace plumb
