// GELU and its derivative in one pass over memory: y = u Phi(u), dgelu = Phi(u) + u phi(u), u = x + b. oneDNN could
// compute GELU at the end of its product. But GELU in oneDNN costs more than this pass, and the backward pass needs the
// derivative.
#if defined(PLUMB_CPU_GELU_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_GELU_INL
#undef PLUMB_CPU_GELU_INL
#else
#define PLUMB_CPU_GELU_INL
#endif

#include <numbers>

#include "backends/cpu/math-inl.h"
#include "core/backend.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

// The erf form. For negative u, Phi(u) = exp(-u^2 / 2) P(t) with t = 1 / (1 + 0.2316419 |u|). P is a fitted polynomial
// with a relative error of 7e-8. Therefore Phi is as accurate in its tail as in the middle, unlike (1 + erf) / 2. The
// derivative needs the exponential anyway: phi(u) = exp(-u^2 / 2) / sqrt(2 pi).
struct ErfForm {
  V u, bell, cdf;  // bell = exp(-u^2 / 2), cdf = Phi(u)

  explicit ErfForm(V x) : u(x) {
    bell = exp2_or_zero(hn::Mul(hn::Mul(u, u), set(-0.5f * log2_e)));
    // Without the limit, the reciprocal of inf would be NaN. If u is NaN, bell is NaN.
    const V size = hn::Min(hn::Abs(u), set(1e18f)), t = reciprocal(hn::MulAdd(size, set(0.2316419f), set(1.0f)));
    V p = set(-0.0719413392f);
    p = hn::MulAdd(p, t, set(0.254234595f));
    p = hn::MulAdd(p, t, set(-0.213439092f));
    p = hn::MulAdd(p, t, set(0.236678673f));
    p = hn::MulAdd(p, t, set(0.00710985104f));
    p = hn::MulAdd(p, t, set(0.104758162f));
    p = hn::MulAdd(p, t, set(0.0900500281f));
    p = hn::MulAdd(p, t, set(0.0925491218f));
    const V tail = hn::Mul(bell, hn::Mul(p, t));
    cdf = hn::IfThenElse(hn::Lt(u, zero()), tail, hn::Sub(set(1.0f), tail));
  }
  V value() const { return hn::Mul(u, cdf); }
  static constexpr float density = std::numbers::inv_sqrtpi_v<float> / std::numbers::sqrt2_v<float>;
  V slope() const { return hn::MulAdd(hn::Mul(u, set(density)), bell, cdf); }
  V curvature() const {  // for u that is so large that bell is 0, u^2 may be inf
    const V c = hn::Mul(hn::Mul(bell, set(density)), hn::NegMulAdd(u, u, set(2.0f)));
    return hn::IfThenZeroElse(hn::Eq(bell, zero()), c);
  }
};

// The tanh form: y = u s, s = (1 + tanh(z)) / 2 = 1 / (1 + exp(-2 z)), z = c (u + 0.044715 u^3).
struct TanhForm {
  static constexpr float c = std::numbers::sqrt2_v<float> * std::numbers::inv_sqrtpi_v<float>, cube = 0.044715f;
  V u, near, e, s;  // near: u, but at most 1e4 in size; beyond, the derivatives are constant. e = exp(-2 z)

  explicit TanhForm(V x) : u(x), near(hn::Min(hn::Max(x, set(-1e4f)), set(1e4f))) {
    const V z = hn::Mul(u, hn::MulAdd(hn::Mul(u, u), set(c * cube), set(c)));
    // From t = 100 on, s is set to 0 instead of at most 2^-100, because u s must not grow with u. The comparison lets
    // NaN pass.
    const V t = hn::Mul(z, set(-2 * log2_e));
    const auto none = hn::Gt(t, set(100.0f));
    e = exp2_or_zero(hn::IfThenElse(none, set(100.0f), t));
    s = hn::IfThenZeroElse(none, reciprocal(hn::Add(set(1.0f), e)));
  }
  V value() const { return hn::Mul(u, s); }
  V slope() const {
    return hn::MulAdd(hn::Mul(hn::Mul(near, s), hn::Mul(e, s)), twice_dz(), s);  // with 1 - s = e s
  }
  V curvature() const {  // s (1 - s) (2 dz + u ((1 - 2 s) dz^2 + dz'))
    const V dz = twice_dz(), other = hn::Mul(e, s);
    const V bend = hn::MulAdd(hn::Mul(hn::Sub(other, s), dz), dz, hn::Mul(near, set(12 * c * cube)));
    return hn::Mul(hn::Mul(s, other), hn::MulAdd(near, bend, hn::Add(dz, dz)));
  }

 private:
  V twice_dz() const { return hn::MulAdd(hn::Mul(near, near), set(6 * c * cube), set(2 * c)); }  // 2 dz/du
};

template <class Form, class Y>
HWY_INLINE void gelu_rows(const float* x, std::int64_t x_row, const float* b, std::int64_t rows, std::int64_t D, Y* y,
                          Y* dgelu, std::int64_t y_row) {
  for_block(rows, D, [&](std::int64_t r, std::int64_t i, auto part) HWY_ATTR {
    V u = load(x + r * x_row + i, part);
    if (b) u = hn::Add(u, load(b + i, part));
    const Form form(u);
    store(form.value(), y + r * y_row + i, part);
    if (dgelu) store(form.slope(), dgelu + r * y_row + i, part);
  });
}

// Computes y = gelu(x + b) and dgelu = gelu'(x + b) for rows of D elements. The rows of x begin `x_row` elements apart,
// those of y and dgelu `y_row` elements. b is [D] or null. dgelu may be null. If x_row is y_row, y or dgelu may be x
// itself.
template <class Y>
HWY_INLINE void gelu_rows(Gelu form, const float* x, std::int64_t x_row, const float* b, std::int64_t rows,
                          std::int64_t D, Y* y, Y* dgelu, std::int64_t y_row) {
  form == Gelu::erf ? gelu_rows<ErfForm>(x, x_row, b, rows, D, y, dgelu, y_row)
                    : gelu_rows<TanhForm>(x, x_row, b, rows, D, y, dgelu, y_row);
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
