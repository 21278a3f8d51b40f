// Operations that the threads of a warp or of a block do together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace plumb::cuda {

// Returns the number of this thread in a grid of blocks along x.
__device__ __forceinline__ std::int64_t thread_number() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// Returns the sum over the lanes of each group of `width` lanes. The values are added by a tree. Every lane gets the
// same bits.
template <int width = 32, class T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int m = width / 2; m > 0; m /= 2) x += __shfl_xor_sync(~0u, x, m, width);
  return x;
}

// Returns the sum over the threads of a block. The values are added by a tree in `memory` [blockDim.x]. The number of
// threads must be a power of two. Every thread gets the same bits.
template <class T>
__device__ __forceinline__ T block_sum(T x, T* memory) {
  __syncthreads();  // a thread may still read an earlier sum in `memory`
  memory[threadIdx.x] = x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) memory[threadIdx.x] += memory[threadIdx.x + half];
    __syncthreads();
  }
  return memory[0];
}

// Returns the dynamic shared memory of the block (the `shared_bytes` of launch()).
template <class T>
__device__ __forceinline__ T* shared() {
#if defined(PLUMB_CUDA_EMULATED)
  return reinterpret_cast<T*>(emulator::shared_memory());
#else
  extern __shared__ float4 memory[];
  return reinterpret_cast<T*>(memory);
#endif
}

}  // namespace plumb::cuda
