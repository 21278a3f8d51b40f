// Launches kernels and counts the bytes that the kernels read and write:
//
//   launch(kernel, grid, block, shared_bytes, arguments...);
//
// Kernels run on the stream of the process, in the order of the calls. Grids must depend on shapes only, so that
// results do not depend on the size of the device.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime.h"
#include "core/array.h"

namespace plumb::cuda {

// Launches `kernel` on stream(). Throws Error if the launch fails.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Arguments... arguments) {
  ++counters.launches;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = stream();
  PLUMB_CUDA_CHECKED(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

constexpr int block_threads = 256;  // number of threads per block for kernels with one thread per work item

// Launches `kernel` with one thread for each of n work items. If n = 0, launches nothing. The kernel must skip thread
// numbers from n on.
template <class... Parameters, class... Arguments>
void launch_for(std::int64_t n, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n > 0)
    launch(kernel, dim3{static_cast<unsigned>((n + block_threads - 1) / block_threads), 1, 1},
           dim3{block_threads, 1, 1}, 0, arguments...);
}

// Adds `bytes` to the bytes that launches read and write (Traffic).
inline void count_bytes(std::int64_t bytes) { counters.bytes += static_cast<std::uint64_t>(bytes); }

// Returns the device address of the elements, or null if the array is undefined. T must match the dtype.
template <class T>
const T* pointer(const Array& a) {
  internal_check(!a.defined() || dtype_of<T> == a.dtype(), "kernel argument has the wrong dtype {}",
                 enum_name(a.dtype()));
  return a.defined() ? static_cast<const T*>(a.address()) : nullptr;
}
template <class T>
T* pointer(const Out& a) {
  return const_cast<T*>(pointer<T>(static_cast<const Array&>(a)));
}
// Like pointer(), for an operand that a launch reads or writes as a whole. Also counts the bytes of the operand once.
template <class T, class A>
auto elements(const A& a) {
  if (a.defined()) count_bytes(static_cast<std::int64_t>(a.size_in_bytes()));
  return pointer<T>(a);
}
// Like elements(), for an operand that a launch reads and writes. Counts the bytes of the operand twice.
template <class T>
T* in_place(const Out& a) {
  elements<T>(a);
  return elements<T>(a);
}

}  // namespace plumb::cuda
