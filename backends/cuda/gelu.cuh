// GELU (Hendrycks, Gimpel 2016) and its first two derivatives.
//   erf form: x Phi(x), slope Phi(x) + x phi(x).
//   tanh form: x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3).
#pragma once

#include <cuda_runtime.h>

#include "core/backend.h"

namespace plumb::cuda {

template <class T>
struct ValueAndSlope {
  T value, slope;
};

// Returns x, but at most 1e4 in size. Beyond, the derivatives are constant, but their formulas contain inf times 0.
template <class T>
__device__ __forceinline__ T near(T x) {
  constexpr T limit = static_cast<T>(1e4);
  return x > limit ? limit : x < -limit ? -limit : x;  // the comparisons let NaN pass
}

// Returns the second derivative. For the erf form, the second derivative is phi(x) (2 - x^2).
template <Gelu form, class T>
__device__ __forceinline__ T gelu_curvature(T any_x) {
  const T x = near(any_x);
  constexpr T density = static_cast<T>(0.39894228040143268), c = static_cast<T>(0.79788456080286536),
              cubic = static_cast<T>(0.044715), half = static_cast<T>(0.5);
  if constexpr (form == Gelu::erf) {
    return density * exp(-half * x * x) * (2 - x * x);
  } else {
    const T u = c * (x + cubic * x * x * x), t = tanh(u), du = c * (1 + 3 * cubic * x * x), ddu = c * 6 * cubic * x;
    const T e = exp(-2 * std::abs(u)),
            slope_of_t = 4 * e / ((1 + e) * (1 + e));  // equals 1 - t^2; accurate even if t rounds to 1
    return slope_of_t * (du + half * x * (ddu - 2 * t * du * du));
  }
}

// Returns gelu(x) and its derivative.
template <Gelu form, class T>
__device__ __forceinline__ ValueAndSlope<T> gelu(T x) {
  constexpr T root_half = static_cast<T>(0.70710678118654752), density = static_cast<T>(0.39894228040143268),
              c = static_cast<T>(0.79788456080286536), cubic = static_cast<T>(0.044715), half = static_cast<T>(0.5);
  if constexpr (form == Gelu::erf) {
    const T cdf = half * (1 + erf(x * root_half));
    return {x * cdf, cdf + x * (density * exp(-half * x * x))};
  } else {
    const T t = tanh(c * (x + cubic * x * x * x)), v = near(x);
    return {half * x * (1 + t), half * (1 + t) + half * v * (1 - t * t) * (c * (1 + 3 * cubic * v * v))};
  }
}

}  // namespace plumb::cuda
