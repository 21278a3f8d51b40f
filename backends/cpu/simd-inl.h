// What the kernels share, compiled once for each instruction set: vectors of f32, loads and stores of a part, sums over lanes.
// A kernel file includes it after hwy/foreach_target.h and opens HWY_BEFORE_NAMESPACE().
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

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using V = hn::Vec<F32>;
using Mask = hn::Mask<F32>;
constexpr F32 f32{};
constexpr std::int64_t W = HWY_LANES(float);  // f32 lanes of a vector
static_assert(!HWY_HAVE_SCALABLE, "vectors must have a size known at compile time");

// Which lanes of a vector a load or store touches: all, or the first n (the others read as 0 and are not written).
struct Whole {};
struct Part {
  std::int64_t n;
};

HWY_INLINE V load(const float* p, Whole) { return hn::LoadU(f32, p); }
HWY_INLINE void store(V v, float* p, Whole) { hn::StoreU(v, f32, p); }

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
HWY_INLINE V load(const float* p, Part part) { return hn::MaskedLoad(hn::FirstN(f32, static_cast<std::size_t>(part.n)), f32, p); }
HWY_INLINE void store(V v, float* p, Part part) { hn::BlendedStore(v, hn::FirstN(f32, static_cast<std::size_t>(part.n)), f32, p); }
#else  // masked accesses touch the whole vector here
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

// v, with the lanes that a load of this part did not read set to `other`.
HWY_INLINE V or_else(V v, V, Whole) { return v; }
HWY_INLINE V or_else(V v, V other, Part part) { return hn::IfThenElse(hn::FirstN(f32, static_cast<std::size_t>(part.n)), v, other); }

// Calls body(i, Whole or Part) for i = 0, W, 2 W, ... below n.
template <class Body>
HWY_INLINE void for_lanes(std::int64_t n, Body&& body) {
  std::int64_t i = 0;
  for (; i + W <= n; i += W) body(i, Whole{});
  if (i < n) body(i, Part{n - i});
}

HWY_INLINE V set(float x) { return hn::Set(f32, x); }
HWY_INLINE V zero() { return hn::Zero(f32); }
HWY_INLINE float sum_lanes(V v) { return hn::GetLane(hn::SumOfLanes(f32, v)); }
HWY_INLINE float max_lanes(V v) { return hn::GetLane(hn::MaxOfLanes(f32, v)); }

// The larger; a NaN in either stays.
HWY_INLINE V max_or_nan(V a, V b) { return hn::IfThenElse(hn::Or(hn::Gt(b, a), hn::IsNaN(b)), b, a); }

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
