// Elementwise ops, comparisons and selection. Operands broadcast by NumPy's rules.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- arithmetic (arithmetic.cpp)
// ---------------------------------------------------------------------------------------------------
Tensor operator+(const Tensor& a, const Tensor& b);
Tensor operator-(const Tensor& a, const Tensor& b);
Tensor operator*(const Tensor& a, const Tensor& b);
Tensor operator/(const Tensor& a, const Tensor& b);
Tensor operator+(const Tensor& x, double c);
Tensor operator*(const Tensor& x, double c);
inline Tensor operator+(double c, const Tensor& x) { return x + c; }
inline Tensor operator*(double c, const Tensor& x) { return x * c; }
inline Tensor operator-(const Tensor& x) { return x * -1.0; }
inline Tensor operator-(const Tensor& x, double c) { return x + -c; }
inline Tensor operator-(double c, const Tensor& x) { return -x + c; }
inline Tensor operator/(const Tensor& x, double c) { return x * (1 / c); }
Tensor exp(const Tensor& x);
Tensor expm1(const Tensor& x);  // e^x - 1, accurate for small x too
Tensor log(const Tensor& x);
Tensor log1p(const Tensor& x);  // log(1 + x), accurate for small x too
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor tanh(const Tensor& x);
Tensor erf(const Tensor& x);
Tensor sqrt(const Tensor& x);
Tensor rsqrt(const Tensor& x);  // x^-1/2
Tensor relu(const Tensor& x);   // derivative 0 at 0
Tensor abs(const Tensor& x);    // derivative 0 at 0
Tensor sign(const Tensor& x);   // -1, 0 or 1; derivative 0
Tensor floor(const Tensor& x);  // derivative 0
Tensor round(const Tensor& x);  // to the nearest integer, ties to even; derivative 0
Tensor pow(const Tensor& x, double exponent);
// x^y. The derivative towards x is 0 where y is 0; towards y it is 0 where x is 0 and y is at least 0, and NaN where x
// is below 0.
Tensor pow(const Tensor& x, const Tensor& y);
inline Tensor operator/(double c, const Tensor& x) { return pow(x, -1) * c; }
// The larger, or smaller, of a and b; NaN where one of them is NaN. Where both are equal, each gets half of the
// gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& x, double c);
Tensor minimum(const Tensor& x, double c);
// low where x < low, high where x > high, else x; infinities leave a side open. The derivative is 1 where low <= x <=
// high, else 0.
Tensor clamp(const Tensor& x, double low, double high);
// From any dtype to f32, f64 or bf16, rounded to the nearest, ties to even; the gradient is cast back. Integers have
// none: a mask becomes 0 and 1.
Tensor cast(const Tensor& x, DType dtype);

// ---- comparisons (compare.cpp)
// ----------------------------------------------------------------------------------------------------- Masks, u8: 1
// where it holds, else 0, as where() takes them; no gradient. Of one dtype, which may be any; all are false where one
// is NaN. A number is compared in the tensor's dtype. (== would ask whether two handles are one tensor, so it is not
// there.)
Tensor equal(const Tensor& a, const Tensor& b);
Tensor less(const Tensor& a, const Tensor& b);
Tensor less_equal(const Tensor& a, const Tensor& b);
Tensor greater(const Tensor& a, const Tensor& b);
Tensor greater_equal(const Tensor& a, const Tensor& b);
Tensor equal(const Tensor& x, double c);
Tensor less(const Tensor& x, double c);
Tensor less_equal(const Tensor& x, double c);
Tensor greater(const Tensor& x, double c);
Tensor greater_equal(const Tensor& x, double c);
inline Tensor operator<(const Tensor& a, const Tensor& b) { return less(a, b); }
inline Tensor operator<=(const Tensor& a, const Tensor& b) { return less_equal(a, b); }
inline Tensor operator>(const Tensor& a, const Tensor& b) { return greater(a, b); }
inline Tensor operator>=(const Tensor& a, const Tensor& b) { return greater_equal(a, b); }
inline Tensor operator<(const Tensor& x, double c) { return less(x, c); }
inline Tensor operator<=(const Tensor& x, double c) { return less_equal(x, c); }
inline Tensor operator>(const Tensor& x, double c) { return greater(x, c); }
inline Tensor operator>=(const Tensor& x, double c) { return greater_equal(x, c); }
// Masks of a floating x, likewise.
Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);  // neither NaN nor infinite
// Whether |a - b| <= absolute + relative |b| everywhere, after broadcasting. Equal infinities are close; NaN is close
// to NaN if `equal_nan`, else to nothing. Any dtype, the same for both; tensors may lie on different devices. Waits for
// both.
bool allclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8, bool equal_nan = false);

// ---- selection (where.cpp)
// --------------------------------------------------------------------------------------------------------- mask u8: a
// where it is not 0, else b. Only where an element comes from does its gradient go.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& mask, const Tensor& a, double b);
Tensor where(const Tensor& mask, double a, const Tensor& b);
// A constant of f32, f64 or bf16 on the mask's device.
Tensor where(const Tensor& mask, double a, double b, DType dtype = defaults().dtype);
// value where the mask is not 0, else x
inline Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return where(mask, value, x); }

}  // namespace plumb
