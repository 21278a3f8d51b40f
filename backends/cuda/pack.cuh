// 16 bytes of neighbouring elements. A thread reads or writes these bytes at once. Arrays begin at multiples of 64
// bytes.
#pragma once

#include <cuda_runtime.h>

#include "core/bfloat16.h"

namespace plumb::cuda {

// The number of elements of type T in 16 bytes.
template <class T>
inline constexpr int pack_size = static_cast<int>(16 / sizeof(T));

// n neighbouring elements.
template <class T, int n = pack_size<T>>
struct alignas(n * sizeof(T)) Pack {
  T v[n];
};

// Load and store n elements with one access. The address p must be a multiple of n * sizeof(T).
template <class T, int n = pack_size<T>>
__device__ __forceinline__ Pack<T, n> load_pack(const T* p) {
  return *reinterpret_cast<const Pack<T, n>*>(p);
}
template <class T, int n>
__device__ __forceinline__ void store_pack(const Pack<T, n>& pack, T* p) {
  *reinterpret_cast<Pack<T, n>*>(p) = pack;
}

// arithmetic<T>: the type in which elements of type T are computed: f32 for bf16, otherwise T.
template <class T>
struct Arithmetic {
  using type = T;
};
template <>
struct Arithmetic<bfloat16> {
  using type = float;
};
template <class T>
using arithmetic = typename Arithmetic<T>::type;

}  // namespace plumb::cuda
