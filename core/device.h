// Where an array lives and which kernels compute with it.
#pragma once

#include <cstdint>

namespace plumb {

// reference: naive loops, the meaning of every op; cpu: oneDNN and fused kernels. Both use host memory.
enum class Device : std::uint8_t { reference, cpu };

inline const char* name(Device device) { return device == Device::cpu ? "cpu" : "reference"; }

}  // namespace plumb
