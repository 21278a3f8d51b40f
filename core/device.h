// The devices. A device determines the memory of an array and the kernels that compute with the array.
#pragma once

#include <cstdint>
#include <string>

#include "core/enum_names.h"

namespace plumb {

// reference: naive loops that define the meaning of every op. cpu: oneDNN and fused kernels. The devices `reference`
// and `cpu` use host memory. cuda: a GPU with separate memory.
enum class Device : std::uint8_t { reference, cpu, cuda };
constexpr auto names_of(Device) { return std::array{"reference", "cpu", "cuda"}; }

// Whether host code can read the arrays of a device directly.
constexpr bool in_host_memory(Device device) { return device != Device::cuda; }

// The reason why Device::cuda cannot be used, such as "this build of Plumb has no CUDA" or "no CUDA device"; "" if it
// can be used. If there is a reason, using Device::cuda throws Error with this text.
std::string why_no_cuda();

// The number of threads of the cpu backend, including the calling thread. 0 means every processor that the process may
// use; OMP_NUM_THREADS is ignored. The threads wait for work without any setting (docs/numerics.md: "Threads that
// wait").
void set_num_threads(int n);
int num_threads();
// The same seed and number of threads always give the same bits. In strict mode, any number of threads gives the same
// bits on CPUs with the same instruction set. In strict mode, some weight gradients use block sizes that are not
// optimal for the number of threads.
void set_strict_determinism(bool on);
bool strict_determinism();

}  // namespace plumb
