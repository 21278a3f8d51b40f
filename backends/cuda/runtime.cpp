#include "backends/cuda/runtime.h"

#include "backends/cuda/cublaslt.h"
#include "core/backend.h"
#include "core/device_lost.h"
#include "core/error.h"

namespace plumb {

namespace {

constexpr int least_major = 8;  // the least compute capability that the kernels are compiled for (8.0)

// A version of CUDA, such as "13.0" for 13000.
std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// The newest CUDA that the driver supports, and the CUDA that Plumb was built with; 0 without a driver.
struct Versions {
  int driver = 0, runtime = 0;
  Versions() { cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime); }
};
std::string versions() {
  const Versions v;
  return fmt::format("driver for CUDA {}, Plumb with CUDA {}", version_text(v.driver), version_text(v.runtime));
}

}  // namespace

std::string why_no_cuda() {
  const Versions v;
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (v.driver == 0) return "no NVIDIA driver";
  if (status == cudaErrorInsufficientDriver)
    return fmt::format("the NVIDIA driver supports CUDA up to {}, but Plumb was built with CUDA {}; update the driver",
                       version_text(v.driver), version_text(v.runtime));
  if (status == cudaErrorNoDevice || (status == cudaSuccess && count == 0)) return "no CUDA device";
  if (status != cudaSuccess) return fmt::format("CUDA does not start: {} ({})", cudaGetErrorString(status), versions());
  cudaDeviceProp device;
  if (const cudaError_t asked = cudaGetDeviceProperties(&device, 0); asked != cudaSuccess)
    return fmt::format("CUDA does not describe its device: {}", cudaGetErrorString(asked));
  if (device.major < least_major)
    return fmt::format("{} has compute capability {}.{}, but the kernels need {}.0 or higher ({})", device.name,
                       device.major, device.minor, least_major, versions());
  return cuda::why_no_cublaslt();
}

std::string cuda_description() {
  cuda::stream();  // stream() throws Error if there is no device
  cudaDeviceProp device;
  PLUMB_CUDA_CHECKED(cudaGetDeviceProperties(&device, 0));
  return fmt::format("{}, compute capability {}.{}", device.name, device.major, device.minor);
}

namespace cuda {

Counters counters;

void check_device() {
  cudaGetLastError();  // clears an error that concerned a single call
  const cudaError_t status = cudaDeviceSynchronize();
  // Without memory, or beside a process that has the device alone, CUDA does not start: that is no fault of the device.
  if (status == cudaSuccess || status == cudaErrorMemoryAllocation || status == cudaErrorDevicesUnavailable) return;
  throw DeviceLost(
      fmt::format("the CUDA device failed: {} ({}). A kernel or copy that was started earlier can be the reason. This "
                  "process cannot use the device again; start the program again, a study with --resume",
                  cudaGetErrorString(status), versions()));
}

void checked(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  check_device();
  fail(fmt::format("[cuda] {}: {}", call, cudaGetErrorString(status)));
}

cudaStream_t stream() {
  static const cudaStream_t the_stream = [] {
    const std::string why = why_no_cuda();
    check(why.empty(), "[cuda] expected a device to compute on, got none: {}", why);
    PLUMB_CUDA_CHECKED(cudaSetDevice(0));
    cudaStream_t s = nullptr;
    PLUMB_CUDA_CHECKED(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    return s;
  }();
  return the_stream;
}

}  // namespace cuda
}  // namespace plumb
