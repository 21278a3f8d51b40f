// Where an array lives and which kernels compute with it.
#pragma once

#include <cstdint>
#include <string>

namespace plumb {

// reference: naive loops, the meaning of every op; cpu: oneDNN and fused kernels. Both use host memory. cuda: a GPU
// with memory of its own.
enum class Device : std::uint8_t { reference, cpu, cuda };

constexpr const char* name(Device device) {
  switch (device) {
    case Device::reference:
      return "reference";
    case Device::cpu:
      return "cpu";
    case Device::cuda:
      break;
  }
  return "cuda";
}

// Whether host code may follow the addresses of its arrays.
constexpr bool in_host_memory(Device device) { return device != Device::cuda; }

// What Device::cuda lacks here, "" if it can be used: "this build of Plumb has no CUDA", "no CUDA device", .. Using it
// nevertheless throws an Error that says so.
std::string why_no_cuda();

}  // namespace plumb
