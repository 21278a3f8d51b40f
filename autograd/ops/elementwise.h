// Elementwise ops, comparisons and selection.
#pragma once

#include "autograd/tensor.h"

namespace plumb {

// ---- arithmetic (arithmetic.cpp)

// Elementwise arithmetic. Operands broadcast by NumPy's rules; a double counts as a constant.
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
// Elementwise functions of x.
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
// Elementwise power: x^exponent.
Tensor pow(const Tensor& x, double exponent);
// Elementwise power: x^y. The derivative with respect to x is 0 if y is 0. The derivative with respect to y is 0 if x
// is 0 and y >= 0, and NaN if x < 0.
Tensor pow(const Tensor& x, const Tensor& y);
// Elementwise c / x.
inline Tensor operator/(double c, const Tensor& x) { return pow(x, -1) * c; }
// The larger, or the smaller, of two operands; NaN if an operand is NaN. If both operands are equal, each operand gets
// half of the gradient.
Tensor maximum(const Tensor& a, const Tensor& b);
Tensor minimum(const Tensor& a, const Tensor& b);
Tensor maximum(const Tensor& x, double c);
Tensor minimum(const Tensor& x, double c);
// Limits x elementwise: low if x < low, high if x > high, else x. A bound may be infinite. The derivative is 1 if low
// <= x <= high, else 0.
Tensor clamp(const Tensor& x, double low, double high);
// Converts from any dtype to f32, f64 or bf16, rounding to nearest, ties to even. The gradient is converted back.
// Integers have no gradient; a mask becomes 0 and 1.
Tensor cast(const Tensor& x, DType dtype);

// ---- comparisons (compare.cpp)

// A mask u8 for where(): 1 if the comparison of the elements holds, else 0. The mask has no gradient. Both operands
// have the same dtype, which may be any. Every comparison with NaN is false. A double is compared in the dtype of x;
// throws Error if this dtype cannot represent the double. (There is no operator ==, which could be mistaken for a
// comparison of handles.)
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
// A mask u8 of the elements of a floating x that are NaN, or that are finite.
Tensor isnan(const Tensor& x);
Tensor isfinite(const Tensor& x);
// Whether |a - b| <= absolute + relative |b| holds for all elements after broadcasting. Equal infinities are close. NaN
// is close to NaN if `equal_nan`, else to nothing. Both operands have the same dtype, which may be any, and may be on
// different devices. Waits for both operands.
bool allclose(const Tensor& a, const Tensor& b, double relative = 1e-5, double absolute = 1e-8, bool equal_nan = false);

// ---- selection (where.cpp)

// Selects elementwise: a where the mask (u8) is not 0, else b. The gradient of an element flows only to the selected
// operand.
Tensor where(const Tensor& mask, const Tensor& a, const Tensor& b);
Tensor where(const Tensor& mask, const Tensor& a, double b);
Tensor where(const Tensor& mask, double a, const Tensor& b);
// Selects between two numbers by a mask (u8). The result is a constant in f32, f64 or bf16 on the device of the mask.
Tensor where(const Tensor& mask, double a, double b, DType dtype = defaults().dtype);
// Replaces elements of x: value where the mask (u8) is not 0, else x.
inline Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) { return where(mask, value, x); }

}  // namespace plumb
