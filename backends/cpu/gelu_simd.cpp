// GELU as a separate op. (GELU after a product is part of linear_forward_simd.cpp.)
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gelu_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/gelu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void GeluRows(Gelu form, const float* x, const float* b, std::int64_t rows, std::int64_t D, float* y, float* dgelu) {
  gelu_rows(form, x, D, b, rows, D, y, dgelu, D);
}

template <class Form>
HWY_INLINE void second(const float* g, const float* dy, const float* x, std::int64_t n, float* ddy, float* dx) {
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR {
    const Form form(load(x + i, part));
    const V gradient = load(g + i, part);
    store(hn::Mul(gradient, form.slope()), ddy + i, part);
    if (dx) store(hn::Mul(hn::Mul(gradient, load(dy + i, part)), form.curvature()), dx + i, part);
  });
}

void GeluSecond(Gelu form, const float* g, const float* dy, const float* x, std::int64_t n, float* ddy, float* dx) {
  form == Gelu::erf ? second<ErfForm>(g, dy, x, n, ddy, dx) : second<TanhForm>(g, dy, x, n, ddy, dx);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(GeluRows);
HWY_EXPORT(GeluSecond);

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  const float *const from = x.data<float>(), *const bias = b.defined() ? b.data<float>() : nullptr;
  float *const value = y.mutable_data<float>(), *const slope = dgelu.defined() ? dgelu.mutable_data<float>() : nullptr;
  const auto run = [&](std::int64_t begin, std::int64_t rows, std::int64_t D) {
    HWY_DYNAMIC_DISPATCH(GeluRows)(form, from + begin, bias, rows, D, value + begin, slope ? slope + begin : nullptr);
  };
  if (!bias)
    return parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) { run(begin, 1, end - begin); });
  const std::int64_t D = b.numel();
  parallel_rows(D ? x.numel() / D : 0, D,
                [&](std::int64_t begin, std::int64_t end) { run(begin * D, end - begin, D); });
}

void gelu_second(Gelu form, const Array& g, const Array& dy, const Array& x, const Out& ddy, const Out& dx) {
  parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(GeluSecond)
    (form, g.data<float>() + begin, dy.data<float>() + begin, x.data<float>() + begin, end - begin,
     ddy.mutable_data<float>() + begin, dx.defined() ? dx.mutable_data<float>() + begin : nullptr);
  });
}

}  // namespace plumb::cpu
#endif
