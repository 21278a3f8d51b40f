// Code shared by the forward and backward kernels of the linear layer.
#if defined(PLUMB_CPU_LINEAR_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_LINEAR_INL
#undef PLUMB_CPU_LINEAR_INL
#else
#define PLUMB_CPU_LINEAR_INL
#endif

#include <type_traits>

#include "backends/cpu/layer_norm-inl.h"
#include "backends/cpu/panels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// Copies x to y, element by element, and converts each element to the type of y.
template <class X, class Y>
HWY_INLINE void convert(const X* x, std::int64_t n, Y* y) {
  if constexpr (std::is_same_v<X, bfloat16> && std::is_same_v<Y, Rounded>)
    convert(x, n, &y->value);  // x is already rounded to bf16
  else
    for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { store(load(x + i, part), y + i, part); });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
