// Kernel calls that the cuda backend has no kernel for (for some dtypes). The cpu backend computes them; Traffic counts
// them.
#pragma once

#include "backends/cuda/runtime.h"
#include "backends/elsewhere.h"

namespace plumb::cuda {

template <auto entry>
struct ThroughHost;
template <class... Args, void (*Kernels::*entry)(Args...)>
struct ThroughHost<entry> {
  static void call(Args... args) {
    ++counters.through_host;
    elsewhere<entry, Device::cpu>(args...);
  }
};

// Calls the kernel `entry` of the cpu backend with device arrays.
template <auto entry>
inline constexpr auto through_host = &ThroughHost<entry>::call;

}  // namespace plumb::cuda
