// The device that this process computes on, and the conversion of CUDA runtime errors to Error.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "core/memory.h"

namespace plumb::cuda {

// After a call has failed: throws DeviceLost if the device has failed for good, as after an access to a wrong address.
// Kernels run asynchronously, so the reason may be an earlier call. Otherwise returns, and the call alone has failed.
void check_device();

// Unless `status` is success, throws DeviceLost (check_device), or an Error that names the call.
void checked(cudaError_t status, const char* call);
#define PLUMB_CUDA_CHECKED(call) ::plumb::cuda::checked(call, #call)

// Returns the stream on which all work of the process runs. The stream runs the work in the order of the calls,
// whichever thread makes the calls. This order allows freed memory to be reused at once. The first call selects device
// 0. Throws Error if there is no device (why_no_cuda).
cudaStream_t stream();

// The counts that Traffic reports. All threads add to these counts.
struct Counters {
  std::atomic<std::uint64_t> launches = 0, bytes = 0, through_host = 0, uploads = 0, downloads = 0, copies = 0,
                             synchronizations = 0, readbacks = 0, paced = 0, plain_products = 0;
};
extern Counters counters;

}  // namespace plumb::cuda
