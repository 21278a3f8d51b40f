// The built-in part of CUDA C++ (of nvcc) that Plumb's kernels use. cuda_runtime.h includes this file.
#pragma once

#include <math.h>  // gives the global namespace the functions of float, as nvcc does

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "tests/cuda_emulator/lanes.h"

#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __host__
#if defined(__SANITIZE_THREAD__)  // GCC does not instrument the copy of an argument passed by value
#define __device__ __attribute__((always_inline)) inline
#define __forceinline__
#else
#define __device__
#define __forceinline__ __attribute__((always_inline)) inline
#endif
#define __restrict__ __restrict

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct uint3 {
  unsigned x = 0, y = 0, z = 0;
};
struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

using std::min, std::max;

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

#if defined(PLUMB_CUDA_PERTURBED)
// Functions of a device, which round in other ways than those of the host: each result is moved by -2 to 2 ulp,
// depending on its bits, but not from 1 or past 1, so that exp(0) is 1 and tanh and erf end at 1 as on a device. The
// kernels find these functions before those of the global namespace.
namespace plumb::cuda {
template <class T>
T moved(T x) {
  const auto stays = [](T y) { return !std::isfinite(y) || y == 0 || std::abs(y) == 1; };
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  for (int n = static_cast<int>(bits * 0x9e3779b97f4a7c15u >> 33) % 5 - 2; n != 0 && !stays(x); n += n > 0 ? -1 : 1)
    x = std::nextafter(x, n > 0 ? std::numeric_limits<T>::infinity() : -std::numeric_limits<T>::infinity());
  return x;
}
#define PLUMB_MOVED(f)                                 \
  inline float f(float x) { return moved(std::f(x)); } \
  inline double f(double x) { return moved(std::f(x)); }
PLUMB_MOVED(exp)
PLUMB_MOVED(log)
PLUMB_MOVED(log1p)
PLUMB_MOVED(expm1)
PLUMB_MOVED(tanh)
PLUMB_MOVED(erf)
#undef PLUMB_MOVED
}  // namespace plumb::cuda
#endif

inline void __syncthreads() { emulator::block_barrier(); }
inline void __syncwarp(unsigned mask = ~0u) { emulator::warp_barrier(mask); }

namespace emulator {

inline int lane() {
  return static_cast<int>((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}

template <class T>
T shuffle(unsigned mask, T value, int from) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = exchange(mask, bits, from);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

}  // namespace emulator

// Returns the value of another lane. A lane that would read from another group of `width` lanes reads its own value.
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32) {
  const int lane = emulator::lane(), from = lane ^ lane_mask;
  return emulator::shuffle(mask, value, from / width > lane / width ? lane : from);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32) {
  const int lane = emulator::lane(), from = lane + static_cast<int>(delta);
  return emulator::shuffle(mask, value, from / width > lane / width ? lane : from);
}
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  const int lane = emulator::lane();
  return emulator::shuffle(mask, value, lane / width * width + source % width);
}

inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
