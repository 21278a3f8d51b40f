// A backend is one plain table of kernels (listed in core/kernels.def). Kernels get contiguous arrays whose shapes and
// dtypes the op has checked, outputs allocated, and only compute; nothing here throws for the user's mistakes.
//
// Notation: x [R, D] means any array whose last axis is D, seen as R rows. An undefined Array is an operand that is not
// there, an undefined Out a result that nobody wants. All floating operands of a call have one dtype, f32 or f64,
// unless said; the result is written, not added to, unless said.
//
// bf16 stands between fused ops where a kernel says so, and then all its other floating operands are f32. It is read
// exactly, nothing is computed in it, and results are rounded to it once, to the nearest, ties to even. The movement
// kernels, fill and cast take it as any dtype.
#pragma once

#include <algorithm>
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
// Comparisons: 1 where a == b, a < b, a <= b, else 0. maximum, minimum: NaN where an operand is NaN. pow: a^b.
enum class Binary { add, subtract, multiply, divide, equal, less, less_equal, maximum, minimum, pow };
enum class Reduce { sum, max };
enum class Gelu { erf, tanh };  // x Phi(x), or its tanh approximation

// Where heads lie in a buffer: element (b, h, t, i) is at offset + b*batch + h*head + t*token + i. Serves both [B, H,
// T, hd] and the packed product of a qkv projection [B, T, 3, H, hd].
template <class A>
struct HeadsOf {
  A array;
  std::int64_t offset, batch, head, token;
};
using Heads = HeadsOf<Array>;
using HeadsOut = HeadsOf<Out>;

// Attention dropout; probability 0 draws nothing.
struct AttentionDrop {
  std::uint32_t threshold = 0;   // round(65536 p)
  std::uint64_t random_key = 0;  // random_key(seed, path)
};

struct AttentionCall {
  std::int64_t batch, heads, queries, keys, head_dim;
  double scale;           // of the scores, head_dim^-1/2
  Array keep;             // u8 [B, H, N, M], 1 = key kept; undefined: all
  bool causal = false;    // a query sees the keys up to last_key() alone
  KeyMask drop_key;       // before the softmax, survivors are renormalised by it
  AttentionDrop dropout;  // after the softmax, survivors are scaled by 1 / (1 - p)
  EmptyRow empty = EmptyRow::keep_all;
  std::uint32_t step = 0, first_sample = 0;

  // The last key that query n may see: the last query sees all M, the one before it all but one. -1: none.
  std::int64_t last_key(std::int64_t n) const {
    return causal ? std::max<std::int64_t>(n + keys - queries, -1) : keys - 1;
  }
};

// Of a 2-d convolution, the same along both axes: x is padded with `padding` zeros on each side, the filter moves by
// `stride`.
struct Conv2dOptions {
  std::int64_t stride = 1, padding = 0;
  // Extent of the output, where the input has `extent` and the filter `kernel`.
  std::int64_t output(std::int64_t extent, std::int64_t kernel) const {
    return (extent + 2 * padding - kernel) / stride + 1;
  }
};

// Windows of kernel x kernel pixels, `stride` apart (0: the kernel, so that they do not overlap), over an image with
// `padding` on each side.
struct Pool2dOptions {
  std::int64_t kernel = 2, stride = 0, padding = 0;
  std::int64_t step() const { return stride > 0 ? stride : kernel; }
  // Windows along an axis of this extent.
  std::int64_t output(std::int64_t extent) const { return (extent + 2 * padding - kernel) / step() + 1; }
};

// What stands before and after the product of a linear layer, y = after(before(x) w^T + b), so that one pass over the
// rows does it all.
struct LinearCall {
  // Before: layer norm over the last axis, if gamma is defined.
  Array gamma = {}, beta = {};
  double eps = 0;
  // After: with u = before(x) w^T + b, y = u, gelu(u), or skip + row_scale[sample] gate u.
  enum class After { nothing, gelu, residual } after = After::nothing;
  Gelu gelu = Gelu::erf;
  Array skip = {};       // [R, N]
  Array gate = {};       // [1] or [N]; undefined: 1
  Array row_scale = {};  // [B], of R / B rows each; undefined: 1
  // bf16: the operands of the products are rounded to it, sums stay f32. x, y, slope, dy and dx may then be bf16; x
  // with a norm before it, and y and dy of a junction, are f32. Weights and their gradients are f32 always.
  Precision products = Precision::f32;
};
// What forward leaves to backward: of the norm's rows [R], and gelu'(u) [R, N]; of the latter nothing if it is
// undefined in forward.
template <class A>
struct LinearKeptOf {
  A mean = {}, rstd = {}, slope = {};
};
using LinearKept = LinearKeptOf<Array>;
using LinearKeptOut = LinearKeptOf<Out>;
// Its gradients; what is undefined is not wanted. (That of the skip is dy.)
struct LinearGradients {
  Out dx = {};
  bool add_to_dx = false;  // dx holds a gradient already, to which this one is added
  Out dw = {}, db = {}, dgamma = {}, dbeta = {}, dgate = {};
};

struct AdamWStep {
  double lr, beta1, beta2, eps, weight_decay;
  double correction1, correction2;  // 1 - beta^t
};
struct AdamWUpdate {
  AdamWStep step;
  Array gradient;
  Out parameter, moment1, moment2;
};

struct SgdStep {
  double lr, momentum, weight_decay;
  bool nesterov;
};
struct SgdUpdate {
  SgdStep step;
  Array gradient;
  Out parameter, velocity;  // velocity undefined: no momentum
};

struct AdagradStep {
  double lr, eps, weight_decay;
};
struct AdagradUpdate {
  AdagradStep step;
  Array gradient;
  Out parameter, squares;
};

struct EmaUpdate {
  Array value;
  Out average;
};

// What a step's loss and gradients come to: the elements of an array of f64 [4] that lies where they do.
struct StepState {
  double scale = 1;    // of each gradient: clipping by the global norm
  double goes_on = 1;  // 0 from the first step on whose loss or norm is not finite
  double loss = 0, squared_norm = 0;

  // Of an array in host memory; undefined: that of a step without clipping.
  static StepState of(const Array& state) {
    if (!state.defined()) return {};
    const double* const s = state.data<double>();
    return {s[0], s[1], s[2], s[3]};
  }
};

struct Kernels {
#define PLUMB_KERNEL(dtypes, name, parameters) void(*name) parameters;
#include "core/kernels.def"
};

// The tables, defined in backends/. Everything above core reaches kernels through these alone.
const Kernels& reference_kernels();
const Kernels& cpu_kernels();
const Kernels& cuda_kernels();  // throws an Error where there is no device (why_no_cuda)

namespace detail {
inline const Kernels& kernels_of(Device device) {
  return device == Device::cpu ? cpu_kernels() : device == Device::reference ? reference_kernels() : cuda_kernels();
}
inline thread_local bool profiling = false;      // a Profile of this thread lives (core/profile.h)
const Kernels& profiled_kernels(Device device);  // the same kernels, each call recorded
}  // namespace detail

inline const Kernels& kernels(Device device) {
  return detail::profiling ? detail::profiled_kernels(device) : detail::kernels_of(device);
}
inline const Kernels& kernels(const Array& a) { return kernels(a.device()); }

// Of all elements of these arrays, which are on one device; waits for it. Throws for no arrays.
double sum_of_squares(std::span<const Array> arrays);
inline double sum_of_squares(const Array& a) { return sum_of_squares(std::span(&a, 1)); }

// Threads that the cpu backend uses, the calling one among them; 0 means all processors that the process may run on,
// whatever OMP_NUM_THREADS says. Their waiting needs no settings (docs/numerics.md: "Threads that wait").
void set_num_threads(int n);
int num_threads();
// The same seed on the same number of threads gives the same bits, always. Strict: on any number of threads (of one
// instruction set), at the cost of some weight gradients' blocks that suit no number of threads best.
void set_strict_determinism(bool on);
bool strict_determinism();
// How the cpu backend multiplies operands in bf16: by the processor's instructions for it where they are faster than
// those for f32, else by those. Rounding is the same everywhere; only the order of sums differs. It is looked up in a
// table of processors, never timed, so that it is the same in each run. ONEDNN_MAX_CPU_ISA, with which oneDNN can be
// told to do without some instructions, is respected.
struct Bf16Products {
  const char* instructions;  // "AMX", "AVX-512 bf16" or "f32 instructions"
  bool faster_than_f32;
};
const Bf16Products& bf16_products();
// One line for logs: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3".
std::string cpu_description();
// "NVIDIA H100 80GB HBM3, compute capability 9.0"; throws an Error where there is no device (why_no_cuda).
std::string cuda_description();

}  // namespace plumb
