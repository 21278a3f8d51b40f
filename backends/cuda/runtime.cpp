#include "backends/cuda/runtime.h"

#include "backends/cuda/cublaslt.h"
#include "core/backend.h"
#include "core/error.h"

namespace plumb {

std::string why_no_cuda() {
  int count = 0;  // count keeps this value if the driver is missing or too old
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver)
    return "no NVIDIA driver, or one older than the CUDA that Plumb was built with";
  if (status != cudaSuccess && status != cudaErrorNoDevice)
    return fmt::format("CUDA does not start: {}", cudaGetErrorString(status));
  return count > 0 ? cuda::why_no_cublaslt() : "no CUDA device";
}

std::string cuda_description() {
  cuda::stream();  // stream() throws Error if there is no device
  cudaDeviceProp device;
  PLUMB_CUDA_CHECKED(cudaGetDeviceProperties(&device, 0));
  return fmt::format("{}, compute capability {}.{}", device.name, device.major, device.minor);
}

namespace cuda {

Counters counters;

void checked(cudaError_t status, const char* call) {
  check(status == cudaSuccess, "[cuda] {}: {}", call, cudaGetErrorString(status));
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
