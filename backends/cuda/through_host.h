// Runs kernel calls on the cpu backend if the cuda backend has no kernel for the dtypes or sizes of the call. Traffic
// counts these calls.
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
