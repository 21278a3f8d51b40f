// Elementary functions on vectors of f32, for each instruction set. The stated errors are the largest errors that
// tests/backends/cpu_kernels_test.cpp measured over the whole range. For NaN, the result is NaN.
#if defined(PLUMB_CPU_MATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PLUMB_CPU_MATH_INL
#undef PLUMB_CPU_MATH_INL
#else
#define PLUMB_CPU_MATH_INL
#endif

#include <hwy/contrib/math/math-inl.h>

#include "backends/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace plumb::cpu::HWY_NAMESPACE {

constexpr float log2_e = 1.44269504f;

// Returns 2^t for t < 128 with a relative error of 1e-7, and 0 for t < -100. Results below 2^-100 would not matter in a
// sum of exponentials that contains a 1. Products with such results would be denormal, which costs a hundred times as
// much.
HWY_INLINE V exp2_or_zero(V t) {
  const V magic = set(0x1.8p23f + 127);  // t + magic rounds t to an integer n and leaves n + 127 in the low bits
  const V z = hn::Add(t, magic), r = hn::Sub(t, hn::Sub(z, magic));
  V p = set(0.0001559467759f);  // p(r): minimax polynomial on [-1/2, 1/2] with p(0) = 1
  p = hn::MulAdd(p, r, set(0.00134066439f));
  p = hn::MulAdd(p, r, set(0.00961769297f));
  p = hn::MulAdd(p, r, set(0.0555031055f));
  p = hn::MulAdd(p, r, set(0.240226528f));
  p = hn::MulAdd(p, r, set(0.693147215f));
  p = hn::MulAdd(p, r, set(1.0f));
  const hn::RebindToSigned<F32> i32;
  const V power = hn::BitCast(f32, hn::ShiftLeft<23>(hn::BitCast(i32, z)));  // 2^n
  return hn::IfThenZeroElse(hn::Lt(t, set(-100.0f)), hn::Mul(p, power));     // if t is NaN, p is NaN
}

// Returns 1 / x within 2 ulp. x and 1 / x must be normal numbers.
HWY_INLINE V reciprocal(V x) {
  const V y = hn::ApproximateReciprocal(x);
  const V z = hn::Mul(y, hn::NegMulAdd(x, y, set(2.0f)));
#if HWY_TARGET == HWY_AVX3  // the approximation has 14 bits
  return z;
#else  // the approximation has 12 or 8 bits
  return hn::Mul(z, hn::NegMulAdd(x, z, set(2.0f)));
#endif
}

// Returns tanh(x) within 4 ulp. Highway's tanh expects finite arguments. Beyond 20, tanh is 1 in f32.
HWY_INLINE V tanh(V x) {
  const V clipped = hn::Min(hn::Max(set(-20.0f), x), set(20.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(f32, clipped));
}

// Returns erf(x) with an absolute error of 4e-7. The approximation is an odd rational function up to the point at which
// erf is 1 in f32.
HWY_INLINE V erf(V x) {
  const V end = set(3.8325069f), c = hn::IfThenElse(hn::Gt(hn::Abs(x), end), hn::CopySign(end, x), x),
          s = hn::Mul(c, c);
  V p = set(-2.72614225801306e-10f);
  p = hn::MulAdd(p, s, set(2.77068142495902e-08f));
  p = hn::MulAdd(p, s, set(-2.10102402082508e-06f));
  p = hn::MulAdd(p, s, set(-5.69250639462346e-05f));
  p = hn::MulAdd(p, s, set(-7.34990630326855e-04f));
  p = hn::MulAdd(p, s, set(-2.95459980854025e-03f));
  p = hn::MulAdd(p, s, set(-1.60960333262415e-02f));
  V q = set(-1.45660718464996e-05f);
  q = hn::MulAdd(q, s, set(-2.13374055278905e-04f));
  q = hn::MulAdd(q, s, set(-1.68282697438203e-03f));
  q = hn::MulAdd(q, s, set(-7.37332916720468e-03f));
  q = hn::MulAdd(q, s, set(-1.42647390514189e-02f));
  return hn::Mul(hn::Mul(c, p), reciprocal(q));
}

}  // namespace plumb::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
