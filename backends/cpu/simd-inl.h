// The basics of all vector kernels, compiled once for each instruction set: vectors of f32, partial loads and stores,
// sums over lanes. A kernel file includes this file after hwy/foreach_target.h, then opens HWY_BEFORE_NAMESPACE().
#if defined(PLUMB_CPU_SIMD_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_SIMD_INL
#undef PLUMB_CPU_SIMD_INL
#else
#define PLUMB_CPU_SIMD_INL
#endif

#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "backends/cpu/elements.h"
#include "backends/cpu/instruction_set.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Vectors of f32, and masks for these vectors.
using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
using Mask = hn::Mask<F32>;
constexpr F32 f32{};
constexpr std::int64_t W = HWY_LANES(float);  // number of f32 lanes per vector
static_assert(!HWY_HAVE_SCALABLE, "vectors must have a size known at compile time");

// The lanes of a vector that a load or store accesses. Whole means all lanes; Part means the first n lanes. The other
// lanes read as 0 and are not written.
struct Whole {};
struct Part {
  std::int64_t n;
};

HWY_INLINE V load(const float* p, Whole) { return hn::LoadU(f32, p); }
HWY_INLINE void store(V v, float* p, Whole) { hn::StoreU(v, f32, p); }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
HWY_INLINE V load(const float* p, Part part) {
  return hn::MaskedLoad(hn::FirstN(f32, static_cast<std::size_t>(part.n)), f32, p);
}
HWY_INLINE void store(V v, float* p, Part part) {
  hn::BlendedStore(v, hn::FirstN(f32, static_cast<std::size_t>(part.n)), f32, p);
}
#else  // with these instruction sets, masked accesses would touch the whole vector
HWY_INLINE V load(const float* p, Part part) {
  HWY_ALIGN float lanes[W] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(part.n) * sizeof(float));
  return hn::Load(f32, lanes);
}
HWY_INLINE void store(V v, float* p, Part part) {
  HWY_ALIGN float lanes[W];
  hn::Store(v, f32, lanes);
  std::memcpy(p, lanes, static_cast<std::size_t>(part.n) * sizeof(float));
}
#endif

// Loads and stores of bf16 in memory, as vectors of f32. A store rounds like the constructor of bfloat16, with integer
// operations, because Highway's conversion truncates and the processor's instruction flushes denormals. Next to AMX,
// which flushes denormals anyway, the instruction is used (rounds_by_instruction).
using HalfBits = hn::Rebind<std::uint16_t, F32>;
constexpr HalfBits half_bits{};
constexpr hn::RebindToUnsigned<F32> f32_bits{};

HWY_INLINE V widen(hn::Vec<HalfBits> v) { return hn::BitCast(f32, hn::ShiftLeft<16>(hn::PromoteTo(f32_bits, v))); }
HWY_INLINE hn::Vec<HalfBits> narrow(V v) {
#if HWY_TARGET == HWY_AVX3
  if (rounds_by_instruction) {  // in assembly, because this form also runs on processors without the instruction
    hn::Vec<HalfBits> rounded;
    __asm__("vcvtneps2bf16 %1, %0" : "=v"(rounded.raw) : "v"(v.raw));
    return rounded;
  }
#endif
  const auto x = hn::BitCast(f32_bits, v), upper = hn::ShiftRight<16>(x);
  const auto rounded =
      hn::ShiftRight<16>(hn::Add(x, hn::Add(hn::And(upper, hn::Set(f32_bits, 1)), hn::Set(f32_bits, 0x7fff))));
  const auto quiet = hn::Or(upper, hn::Set(f32_bits, 0x40));
  return hn::TruncateTo(half_bits, hn::IfThenElse(hn::RebindMask(f32_bits, hn::IsNaN(v)), quiet, rounded));
}
// Returns v rounded to bf16, as f32.
HWY_INLINE V round_to_bf16(V v) {
  const auto x = hn::BitCast(f32_bits, v), odd = hn::And(hn::ShiftRight<16>(x), hn::Set(f32_bits, 1));
  const auto rounded = hn::And(hn::Add(x, hn::Add(odd, hn::Set(f32_bits, 0x7fff))), hn::Set(f32_bits, 0xffff0000));
  const auto quiet = hn::And(hn::Or(x, hn::Set(f32_bits, 0x400000)), hn::Set(f32_bits, 0xffff0000));
  return hn::BitCast(f32, hn::IfThenElse(hn::RebindMask(f32_bits, hn::IsNaN(v)), quiet, rounded));
}
inline const std::uint16_t* bits_of(const bfloat16* p) { return reinterpret_cast<const std::uint16_t*>(p); }
inline std::uint16_t* bits_of(bfloat16* p) { return reinterpret_cast<std::uint16_t*>(p); }

HWY_INLINE V load(const bfloat16* p, Whole) { return widen(hn::LoadU(half_bits, bits_of(p))); }
HWY_INLINE void store(V v, bfloat16* p, Whole) { hn::StoreU(narrow(v), half_bits, bits_of(p)); }

#if HWY_TARGET == HWY_AVX3
HWY_INLINE V load(const bfloat16* p, Part part) {
  return widen(hn::MaskedLoad(hn::FirstN(half_bits, static_cast<std::size_t>(part.n)), half_bits, bits_of(p)));
}
HWY_INLINE void store(V v, bfloat16* p, Part part) {
  hn::BlendedStore(narrow(v), hn::FirstN(half_bits, static_cast<std::size_t>(part.n)), half_bits, bits_of(p));
}
#else
HWY_INLINE V load(const bfloat16* p, Part part) {
  HWY_ALIGN std::uint16_t lanes[W] = {};
  std::memcpy(lanes, p, static_cast<std::size_t>(part.n) * sizeof(bfloat16));
  return widen(hn::Load(half_bits, lanes));
}
HWY_INLINE void store(V v, bfloat16* p, Part part) {
  HWY_ALIGN std::uint16_t lanes[W];
  hn::Store(narrow(v), half_bits, lanes);
  std::memcpy(bits_of(p), lanes, static_cast<std::size_t>(part.n) * sizeof(bfloat16));
}
#endif

// A store to Rounded rounds to bf16.
template <class P>
HWY_INLINE V load(const Rounded* p, P part) {
  return load(&p->value, part);
}
template <class P>
HWY_INLINE void store(V v, Rounded* p, P part) {
  store(round_to_bf16(v), &p->value, part);
}

// Returns v, but sets the lanes that a load of this part did not read to `other`.
HWY_INLINE V or_else(V v, V, Whole) { return v; }
HWY_INLINE V or_else(V v, V other, Part part) {
  return hn::IfThenElse(hn::FirstN(f32, static_cast<std::size_t>(part.n)), v, other);
}

// Calls body(i, lanes) for i = 0, W, 2 W, ... below n. `lanes` is Whole, or Part for an incomplete last vector. A body
// that stores in a hot loop should capture values: GCC loads what a body captures by reference again after each store.
template <class Body>
HWY_INLINE void for_lanes(std::int64_t n, Body&& body) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}

// Calls body(r, i, lanes) for the vectors of each row r, as for_lanes() does. Rows of two vectors, as in the blocks of
// a product by AMX, have a loop of their own, because GCC would load the constants of a short inner loop for every row.
template <class Body>
HWY_INLINE void for_block(std::int64_t rows, std::int64_t n, Body&& body) {
  if (n == 2 * W) {
    for (std::int64_t r = 0; r < rows; ++r) {
      body(r, std::int64_t{0}, Whole{});
      body(r, W, Whole{});
    }
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r) for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { body(r, i, part); });
}

// Copies and converts rows of n elements. The rows of x begin `x_row` elements apart, those of y `y_row` elements.
template <class X, class Y>
HWY_INLINE void convert_rows(const X* x, std::int64_t x_row, std::int64_t rows, std::int64_t n, Y* y,
                             std::int64_t y_row) {
  if constexpr (std::is_same_v<X, bfloat16> && std::is_same_v<Y, Rounded>)
    convert_rows(x, x_row, rows, n, &y->value, y_row);  // x is already rounded to bf16
  else
    for_block(rows, n, [=](std::int64_t r, std::int64_t i, auto part) HWY_ATTR {
      store(load(x + r * x_row + i, part), y + r * y_row + i, part);
    });
}

// Copies x to y, element by element, and converts each element to the type of y.
template <class X, class Y>
HWY_INLINE void convert(const X* x, std::int64_t n, Y* y) {
  convert_rows(x, n, 1, n, y, n);
}

// Calls f with a pointer to the type of the elements: float*, bfloat16* or Rounded*. Kernels are templates on this
// type. Therefore the type is chosen once per block of work.
template <class F>
HWY_INLINE void typed(const Elements& e, F&& f) {
  if (e.dtype == DType::bf16)
    f(static_cast<bfloat16*>(e.data));
  else if (e.rounded)
    f(static_cast<Rounded*>(e.data));
  else
    f(static_cast<float*>(e.data));
}

// A vector whose lanes are all x, a vector of zeros, and the sum and the maximum of the lanes.
HWY_INLINE V set(float x) { return hn::Set(f32, x); }
HWY_INLINE V zero() { return hn::Zero(f32); }
HWY_INLINE float sum_lanes(V v) { return hn::GetLane(hn::SumOfLanes(f32, v)); }
HWY_INLINE float max_lanes(V v) { return hn::GetLane(hn::MaxOfLanes(f32, v)); }

// Returns the larger value of each lane. If either value is NaN, the result is NaN.
HWY_INLINE V max_or_nan(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
