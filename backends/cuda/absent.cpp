// Stands in for the cuda backend in a build without CUDA. Every function reports that CUDA is missing.
#include "core/backend.h"
#include "core/error.h"
#include "core/memory.h"

namespace plumb {

std::string why_no_cuda() { return "this build of Plumb has no CUDA"; }

namespace {

[[noreturn]] void refuse() { fail("[cuda] expected a device to compute on, got none: " + why_no_cuda()); }

}  // namespace

const Kernels& cuda_kernels() { refuse(); }
Memory& cuda_memory() { refuse(); }
std::string cuda_description() { refuse(); }

}  // namespace plumb
