// GELU by itself; after a product it is part of linear_simd.cpp.
#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/gelu_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/gelu-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void GeluRows(Gelu form, const float* x, const float* b, std::int64_t rows, std::int64_t D, float* y, float* dgelu) {
  gelu_rows(form, x, b, rows, D, y, dgelu);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(GeluRows);

void gelu_forward(Gelu form, const Array& x, const Array& b, const Out& y, const Out& dgelu) {
  const float *const from = x.data<float>(), *const bias = b.defined() ? b.data<float>() : nullptr;
  float *const value = y.mutable_data<float>(), *const slope = dgelu.defined() ? dgelu.mutable_data<float>() : nullptr;
  const auto run = [&](std::int64_t begin, std::int64_t rows, std::int64_t D) {
    HWY_DYNAMIC_DISPATCH(GeluRows)(form, from + begin, bias, rows, D, value + begin, slope ? slope + begin : nullptr);
  };
  if (!bias) return parallel_elements(x.numel(), [&](std::int64_t begin, std::int64_t end) { run(begin, 1, end - begin); });
  const std::int64_t D = b.numel();
  parallel_rows(D ? x.numel() / D : 0, D, [&](std::int64_t begin, std::int64_t end) { run(begin * D, end - begin, D); });
}

}  // namespace plumb::cpu
#endif
