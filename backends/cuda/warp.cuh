// What the threads of a warp and of a block do together.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace plumb::cuda {

// This thread's number in a grid of blocks along x.
__device__ __forceinline__ std::int64_t thread_number() { return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; }

// The sum over the lanes of each group of `width`, by a tree; every lane gets the same bits.
template <int width = 32, class T>
__device__ __forceinline__ T warp_sum(T x) {
  for (int m = width / 2; m > 0; m /= 2) x += __shfl_xor_sync(~0u, x, m, width);
  return x;
}

// The sum over the threads of a block, whose number is a power of two, by a tree in `memory` [blockDim.x]; every thread
// gets the same bits.
template <class T>
__device__ __forceinline__ T block_sum(T x, T* memory) {
  __syncthreads();  // nobody reads an earlier sum there any more
  memory[threadIdx.x] = x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) memory[threadIdx.x] += memory[threadIdx.x + half];
    __syncthreads();
  }
  return memory[0];
}

// The memory that launch() gave the block.
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
