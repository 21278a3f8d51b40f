// The maximum and the sum of exponentials of a row, for softmax and cross-entropy.
#if defined(PLUMB_CPU_SOFTMAX_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_SOFTMAX_INL
#undef PLUMB_CPU_SOFTMAX_INL
#else
#define PLUMB_CPU_SOFTMAX_INL
#endif

#include "backends/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Returns the largest element. A NaN in the row may be ignored here, because the NaN reappears when the maximum is
// subtracted from the row.
HWY_INLINE float row_max(const float* x, std::int64_t D) {
  V top = hn::Neg(hn::Inf(f32));
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { top = hn::Max(top, or_else(load(x + i, part), top, part)); });
  return max_lanes(top);
}

// The largest element of a row, and the sum of the exponentials relative to it. The logarithm of the sum is not added
// to the largest element: the result would be rounded to the spacing of floats near that element, which may exceed 1.
struct Exponentials {
  float top, sum;
};
HWY_INLINE Exponentials exponentials(const float* x, std::int64_t D) {
  const float top = row_max(x, D);
  const V vtop = set(top);
  V sum = zero();
  for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
    sum = hn::Add(sum, or_else(exp2_or_zero(hn::Mul(hn::Sub(load(x + i, part), vtop), set(log2_e))), zero(), part));
  });
  return {top, sum_lanes(sum)};
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
