// Softmax and log-softmax over the last axis, row by row.
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/softmax_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void SoftmaxRows(const float* x, std::int64_t rows, std::int64_t D, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += D, y += D) {
    const V top = set(row_max(x, D));
    V sum = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V e = or_else(exp2_or_zero(hn::Mul(hn::Sub(load(x + i, part), top), set(log2_e))), zero(), part);
      sum = hn::Add(sum, e);
      store(e, y + i, part);
    });
    const V scale = set(1 / sum_lanes(sum));
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { store(hn::Mul(load(y + i, part), scale), y + i, part); });
  }
}

void LogSoftmaxRows(const float* x, std::int64_t rows, std::int64_t D, float* y) {
  for (std::int64_t r = 0; r < rows; ++r, x += D, y += D) {
    const Exponentials e = exponentials(x, D);
    const V top = set(e.top), log_sum = set(std::log(e.sum));
    for_lanes(D, [&](std::int64_t i, auto part)
                     HWY_ATTR { store(hn::Sub(hn::Sub(load(x + i, part), top), log_sum), y + i, part); });
  }
}

void SoftmaxBackwardRows(const float* dy, const float* y, std::int64_t rows, std::int64_t D, float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, dy += D, y += D, dx += D) {
    V sum = zero();
    for_lanes(
        D, [&](std::int64_t i, auto part) HWY_ATTR { sum = hn::MulAdd(load(dy + i, part), load(y + i, part), sum); });
    const V dot = set(sum_lanes(sum));
    for_lanes(D, [&](std::int64_t i, auto part)
                     HWY_ATTR { store(hn::Mul(load(y + i, part), hn::Sub(load(dy + i, part), dot)), dx + i, part); });
  }
}

void SoftmaxSecondRows(const float* g, const float* dy, const float* y, std::int64_t rows, std::int64_t D,
                       float* result) {
  for (std::int64_t r = 0; r < rows; ++r, g += D, dy += D, y += D, result += D) {
    V sum = zero(), other = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V p = load(y + i, part);
      sum = hn::MulAdd(load(dy + i, part), p, sum);
      other = hn::MulAdd(load(g + i, part), p, other);
    });
    const V of_dy = set(sum_lanes(sum)), of_g = set(sum_lanes(other));
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V d = load(dy + i, part);
      store(hn::NegMulAdd(d, of_g, hn::Mul(load(g + i, part), hn::Sub(d, of_dy))), result + i, part);
    });
  }
}

void LogSoftmaxBackwardRows(const float* dy, const float* y, std::int64_t rows, std::int64_t D, float* dx) {
  for (std::int64_t r = 0; r < rows; ++r, dy += D, y += D, dx += D) {
    V sum = zero();
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR { sum = hn::Add(sum, load(dy + i, part)); });
    const V total = set(sum_lanes(sum));
    for_lanes(D, [&](std::int64_t i, auto part) HWY_ATTR {
      const V p = exp2_or_zero(hn::Mul(load(y + i, part), set(log2_e)));
      store(hn::NegMulAdd(p, total, load(dy + i, part)), dx + i, part);
    });
  }
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(SoftmaxRows);
HWY_EXPORT(LogSoftmaxRows);
HWY_EXPORT(SoftmaxBackwardRows);
HWY_EXPORT(SoftmaxSecondRows);
HWY_EXPORT(LogSoftmaxBackwardRows);

namespace {

// Calls f(number of rows, offset of the first row) for blocks of rows of x.
template <class F>
void each_block(const Array& x, F&& f) {
  const std::int64_t D = x.dim(-1);
  parallel_rows(D ? x.numel() / D : 0, D, [&](std::int64_t begin, std::int64_t end) { f(end - begin, begin * D); });
}

}  // namespace

void softmax_forward(const Array& x, const Out& y) {
  each_block(x, [&](std::int64_t rows, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(SoftmaxRows)(x.data<float>() + at, rows, x.dim(-1), y.mutable_data<float>() + at);
  });
}

void softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  each_block(y, [&](std::int64_t rows, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(SoftmaxBackwardRows)
    (dy.data<float>() + at, y.data<float>() + at, rows, y.dim(-1), dx.mutable_data<float>() + at);
  });
}

void softmax_second(const Array& g, const Array& dy, const Array& y, const Out& result) {
  each_block(y, [&](std::int64_t rows, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(SoftmaxSecondRows)
    (g.data<float>() + at, dy.data<float>() + at, y.data<float>() + at, rows, y.dim(-1),
     result.mutable_data<float>() + at);
  });
}

void log_softmax_forward(const Array& x, const Out& y) {
  each_block(x, [&](std::int64_t rows, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxRows)(x.data<float>() + at, rows, x.dim(-1), y.mutable_data<float>() + at);
  });
}

void log_softmax_backward(const Array& dy, const Array& y, const Out& dx) {
  each_block(y, [&](std::int64_t rows, std::int64_t at) {
    HWY_DYNAMIC_DISPATCH(LogSoftmaxBackwardRows)
    (dy.data<float>() + at, y.data<float>() + at, rows, y.dim(-1), dx.mutable_data<float>() + at);
  });
}

}  // namespace plumb::cpu
#endif
