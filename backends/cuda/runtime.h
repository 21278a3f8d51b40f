// The device that this process computes on, and errors of the CUDA runtime as Errors.
#pragma once

#include <cuda_runtime.h>

#include <atomic>

#include "core/memory.h"

namespace plumb::cuda {

// Throws an Error that names the call for anything but success. An error of work that was submitted before may come up
// here.
void checked(cudaError_t status, const char* call);
#define PLUMB_CUDA_CHECKED(call) ::plumb::cuda::checked(call, #call)

// The one stream on which everything happens, in the order of the calls, whichever thread makes them: so memory that
// was given back may be used again at once. Takes the first device when it is first asked for; throws an Error where
// there is none (why_no_cuda).
cudaStream_t stream();

// The members of Traffic; any thread counts.
struct Counters {
  std::atomic<std::uint64_t> launches = 0, bytes = 0, through_host = 0, uploads = 0, downloads = 0, copies = 0,
                             synchronizations = 0, readbacks = 0, paced = 0;
};
extern Counters counters;

}  // namespace plumb::cuda
