// Elementwise kernels: fill, cast, unary, binary, where, broadcast. Operands that broadcast are visited row by row
// (walk.h). Arrays are dense. Therefore each operand of a row is either a run of elements or a single element.
#include <cmath>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/route.h"
#include "backends/walk.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise_simd.cpp"
#include <hwy/foreach_target.h>

#include "backends/cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

void Fill(float value, float* y, std::int64_t n) {
  const V v = set(value);
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { store(v, y + i, part); });
}

void Cast(const Elements& x, const Elements& y, std::int64_t n) {
  typed(x, [&](const auto* from) HWY_ATTR {
    typed(y, [&](auto* to) HWY_ATTR {
      for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { store(load(from + i, part), to + i, part); });
    });
  });
}

template <class Op>
HWY_INLINE void map(const float* x, float* y, std::int64_t n, Op op) {
  for_lanes(n, [&](std::int64_t i, auto part) HWY_ATTR { store(op(load(x + i, part)), y + i, part); });
}

// Highway's exp, log and log1p expect finite arguments within the domain of the function. These wrappers also accept
// all other arguments.
HWY_INLINE V exp(V x) { return hn::IfThenElse(hn::IsNaN(x), x, hn::Exp(f32, hn::Min(x, set(104.0f)))); }
HWY_INLINE V log(V x) {
  const V infinity = hn::Inf(f32), nan = hn::NaN(f32);
  V y = hn::Log(f32, x);
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, zero()), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Ge(x, zero()), y, nan);
}
HWY_INLINE V log1p(V x) {
  const V infinity = hn::Inf(f32), nan = hn::NaN(f32);
  V y = hn::Log1p(f32, x);
  y = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  y = hn::IfThenElse(hn::Eq(x, set(-1.0f)), hn::Neg(infinity), y);
  return hn::IfThenElse(hn::Ge(x, set(-1.0f)), y, nan);
}
HWY_INLINE V sigmoid(V x) {
  const V e = exp(hn::Neg(hn::Abs(x))), one = set(1.0f);  // e is at most 1, so nothing overflows
  return hn::Div(hn::IfThenElse(hn::Lt(x, zero()), e, one), hn::Add(one, e));
}
HWY_INLINE V sign(V x) {
  const V one = set(1.0f);
  return hn::IfThenElse(hn::Gt(x, zero()), one, hn::IfThenElse(hn::Lt(x, zero()), hn::Neg(one), hn::Mul(x, zero())));
}

void Pow(float p, const float* x, float* y, std::int64_t n) {
  if (p == 2) return map(x, y, n, [](V v) HWY_ATTR { return hn::Mul(v, v); });
  if (p == 3) return map(x, y, n, [](V v) HWY_ATTR { return hn::Mul(v, hn::Mul(v, v)); });
  if (p == 1) return map(x, y, n, [](V v) HWY_ATTR { return v; });
  if (p == -1) return map(x, y, n, [](V v) HWY_ATTR { return hn::Div(set(1.0f), v); });
  if (p == -2) return map(x, y, n, [](V v) HWY_ATTR { return hn::Div(set(1.0f), hn::Mul(v, v)); });
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::pow(x[i], p);
}

// Calls a function of the C library element by element, because Highway's sin and cos are accurate only for small
// arguments.
template <class F>
void each(const float* x, float* y, std::int64_t n, F f) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

void UnaryRun(Unary op, float p, const float* x, float* y, std::int64_t n) {
  switch (op) {
    case Unary::exp:
      return map(x, y, n, [](V v) HWY_ATTR { return exp(v); });
    case Unary::log:
      return map(x, y, n, [](V v) HWY_ATTR { return log(v); });
    case Unary::tanh:
      return map(x, y, n, [](V v) HWY_ATTR { return tanh(v); });
    case Unary::erf:
      return map(x, y, n, [](V v) HWY_ATTR { return erf(v); });
    case Unary::sqrt:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::Sqrt(v); });
    case Unary::rsqrt:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::Div(set(1.0f), hn::Sqrt(v)); });
    case Unary::relu:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::IfThenZeroElse(hn::Lt(v, zero()), v); });
    case Unary::step:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(v, zero()), set(1.0f)); });
    case Unary::abs:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::Abs(v); });
    case Unary::sign:
      return map(x, y, n, [](V v) HWY_ATTR { return sign(v); });
    case Unary::log1p:
      return map(x, y, n, [](V v) HWY_ATTR { return log1p(v); });
    case Unary::sin:
      return each(x, y, n, [](float v) { return std::sin(v); });
    case Unary::cos:
      return each(x, y, n, [](float v) { return std::cos(v); });
    case Unary::expm1:
      return each(x, y, n, [](float v) { return std::expm1(v); });
    case Unary::floor:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::Floor(v); });
    case Unary::round:
      return map(x, y, n, [](V v) HWY_ATTR { return hn::Round(v); });
    case Unary::sigmoid:
      return map(x, y, n, [](V v) HWY_ATTR { return sigmoid(v); });
    case Unary::pow:
      return Pow(p, x, y, n);
    case Unary::multiply:
      return map(x, y, n, [p](V v) HWY_ATTR { return hn::Mul(v, set(p)); });
    case Unary::add:
      return map(x, y, n, [p](V v) HWY_ATTR { return hn::Add(v, set(p)); });
  }
}

template <class Op>
HWY_INLINE void combine(const float* a, bool a_run, const float* b, bool b_run, float* y, std::int64_t n, Op op) {
  if (a_run && b_run)
    for_lanes(
        n, [&](std::int64_t i, auto part) HWY_ATTR { store(op(load(a + i, part), load(b + i, part)), y + i, part); });
  else if (a_run)
    for_lanes(n,
              [&, v = set(*b)](std::int64_t i, auto part) HWY_ATTR { store(op(load(a + i, part), v), y + i, part); });
  else if (b_run)
    for_lanes(n,
              [&, v = set(*a)](std::int64_t i, auto part) HWY_ATTR { store(op(v, load(b + i, part)), y + i, part); });
  else
    for_lanes(n, [&, v = op(set(*a), set(*b))](std::int64_t i, auto part) HWY_ATTR { store(v, y + i, part); });
}

// If `a_run`, a has n elements; otherwise a has one element. `b_run` means the same for b.
void BinaryRun(Binary op, const float* a, bool a_run, const float* b, bool b_run, float* y, std::int64_t n) {
  switch (op) {
    case Binary::add:
      return combine(a, a_run, b, b_run, y, n, [](V u, V v) HWY_ATTR { return hn::Add(u, v); });
    case Binary::subtract:
      return combine(a, a_run, b, b_run, y, n, [](V u, V v) HWY_ATTR { return hn::Sub(u, v); });
    case Binary::multiply:
      return combine(a, a_run, b, b_run, y, n, [](V u, V v) HWY_ATTR { return hn::Mul(u, v); });
    case Binary::divide:
      return combine(a, a_run, b, b_run, y, n, [](V u, V v) HWY_ATTR { return hn::Div(u, v); });
    case Binary::equal:
      return combine(a, a_run, b, b_run, y, n,
                     [](V u, V v) HWY_ATTR { return hn::IfThenElseZero(hn::Eq(u, v), set(1.0f)); });
    case Binary::less:
      return combine(a, a_run, b, b_run, y, n,
                     [](V u, V v) HWY_ATTR { return hn::IfThenElseZero(hn::Lt(u, v), set(1.0f)); });
    case Binary::less_equal:
      return combine(a, a_run, b, b_run, y, n,
                     [](V u, V v) HWY_ATTR { return hn::IfThenElseZero(hn::Le(u, v), set(1.0f)); });
    case Binary::maximum:
      return combine(a, a_run, b, b_run, y, n,
                     [](V u, V v) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::IsNaN(u), hn::Gt(u, v)), u, v); });
    case Binary::minimum:
      return combine(a, a_run, b, b_run, y, n,
                     [](V u, V v) HWY_ATTR { return hn::IfThenElse(hn::Or(hn::IsNaN(u), hn::Lt(u, v)), u, v); });
    case Binary::pow:
      for (std::int64_t i = 0; i < n; ++i) y[i] = std::pow(a[a_run ? i : 0], b[b_run ? i : 0]);
      return;
  }
}

// Adds two bf16 arrays. Gradients in bf16 use this function.
void AddHalves(const bfloat16* a, const bfloat16* b, bfloat16* y, std::int64_t n) {
  for_lanes(n, [&](std::int64_t i, auto part)
                   HWY_ATTR { store(hn::Add(load(a + i, part), load(b + i, part)), y + i, part); });
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace plumb::cpu {

HWY_EXPORT(Fill);
HWY_EXPORT(Cast);
HWY_EXPORT(UnaryRun);
HWY_EXPORT(BinaryRun);
HWY_EXPORT(AddHalves);

void fill(double value, const Out& y) {
  float* const to = y.mutable_data<float>();
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(Fill)(static_cast<float>(value), to + begin, end - begin);
  });
}

void cast(const Array& x, const Out& y) {
  const auto fast = [](DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; };
  if (!fast(x.dtype()) || !fast(y.dtype())) return reference_kernels().cast(x, y);
  const Elements from(x), to(y);
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(Cast)(from + begin, to + begin, end - begin);
  });
}

void unary(Unary op, double parameter, const Array& x, const Out& y) {
  const float* from = x.data<float>();
  float* const to = y.mutable_data<float>();
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(UnaryRun)(op, static_cast<float>(parameter), from + begin, to + begin, end - begin);
  });
}

void binary(Binary op, const Array& a, const Array& b, const Out& y) {
  if (is(DType::bf16, a) || is(DType::bf16, b) || is(DType::bf16, y)) {
    const bool alike =
        a.dtype() == b.dtype() && a.dtype() == y.dtype() && a.shape() == y.shape() && b.shape() == y.shape();
    if (op != Binary::add || !alike) return reference_kernels().binary(op, a, b, y);
    const bfloat16 *left = a.data<bfloat16>(), *right = b.data<bfloat16>();
    bfloat16* const to = y.mutable_data<bfloat16>();
    return parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(AddHalves)(left + begin, right + begin, to + begin, end - begin);
    });
  }
  const Walk<2> walk(y.shape(), {broadcast_strides(a.shape(), y.shape()), broadcast_strides(b.shape(), y.shape())});
  const bool a_run = walk.inner_stride[0] != 0, b_run = walk.inner_stride[1] != 0;
  const float *left = a.data<float>(), *right = b.data<float>();
  float* const to = y.mutable_data<float>();
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    walk.run(begin, end, [&](std::int64_t n, std::int64_t offset, const auto& from) {
      HWY_DYNAMIC_DISPATCH(BinaryRun)(op, left + from[0], a_run, right + from[1], b_run, to + offset, n);
    });
  });
}

void where(const Array& mask, const Array& a, const Array& b, const Out& y) {
  const auto strides = [&](const Array& from) { return broadcast_strides(from.shape(), y.shape()); };
  const Walk<3> walk(y.shape(), {strides(mask), strides(a), strides(b)});
  const std::int64_t sm = walk.inner_stride[0], sa = walk.inner_stride[1], sb = walk.inner_stride[2];
  const std::uint8_t* chosen = mask.data<std::uint8_t>();
  const float *yes = a.data<float>(), *no = b.data<float>();
  float* const to = y.mutable_data<float>();
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    walk.run(begin, end, [&](std::int64_t n, std::int64_t offset, const auto& from) {
      for (std::int64_t i = 0; i < n; ++i)
        to[offset + i] = chosen[from[0] + i * sm] ? yes[from[1] + i * sa] : no[from[2] + i * sb];
    });
  });
}

void broadcast(const Array& x, const Out& y) {
  const Walk<1> walk(y.shape(), {broadcast_strides(x.shape(), y.shape())});
  const float* source = x.data<float>();
  float* const to = y.mutable_data<float>();
  parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
    walk.run(begin, end, [&](std::int64_t n, std::int64_t offset, const auto& from) {
      if (walk.inner_stride[0])
        std::memcpy(to + offset, source + from[0], static_cast<std::size_t>(n) * sizeof(float));
      else
        std::fill_n(to + offset, n, source[from[0]]);
    });
  });
}

}  // namespace plumb::cpu
#endif
