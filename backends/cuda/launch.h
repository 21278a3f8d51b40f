// How kernels are started:
//
//   launch(kernel, grid, block, shared_bytes, arguments...);
//
// on the stream of the process, in the order of the calls. Grids depend on shapes alone, so that results do not depend
// on the device's size.
#pragma once

#include <cstdint>

#include "backends/cuda/runtime.h"

#if defined(PLUMB_CUDA_EMULATED)
#include "tests/cuda_emulator/runtime.h"
#endif

namespace plumb::cuda {

template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, Arguments... arguments) {
  ++counters.launches;
#if defined(PLUMB_CUDA_EMULATED)
  emulator::submit(stream(), [=] {
    emulator::run_grid(grid, block, shared_bytes, [&] { kernel(static_cast<Parameters>(arguments)...); });
  });
#else
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = stream();
  PLUMB_CUDA_CHECKED(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
#endif
}

constexpr int block_threads = 256;  // of kernels with a thread for each piece of work

// launch() with a thread for each of n pieces of work, none for n = 0; the kernel leaves out those beyond.
template <class... Parameters, class... Arguments>
void launch_for(std::int64_t n, void (*kernel)(Parameters...), Arguments... arguments) {
  if (n > 0)
    launch(kernel, dim3{static_cast<unsigned>((n + block_threads - 1) / block_threads), 1, 1},
           dim3{block_threads, 1, 1}, 0, arguments...);
}

// Counts bytes that a launch reads or writes (Traffic).
inline void count_bytes(std::int64_t bytes) { counters.bytes += static_cast<std::uint64_t>(bytes); }

// The elements on the device; T must be the dtype's type.
template <class T>
const T* pointer(const Array& a) {
  internal_check(!a.defined() || dtype_of<T> == a.dtype(), "kernel given {}", name(a.dtype()));
  return a.defined() ? static_cast<const T*>(a.address()) : nullptr;
}
template <class T>
T* pointer(const Out& a) {
  return const_cast<T*>(pointer<T>(static_cast<const Array&>(a)));
}
// The same of an operand that a launch is given whole, to read or to write: its bytes count.
template <class T, class A>
auto elements(const A& a) {
  if (a.defined()) count_bytes(static_cast<std::int64_t>(a.size_in_bytes()));
  return pointer<T>(a);
}
// To read and to write.
template <class T>
T* in_place(const Out& a) {
  elements<T>(a);
  return elements<T>(a);
}

}  // namespace plumb::cuda
