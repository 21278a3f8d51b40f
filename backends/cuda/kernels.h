// Declares the kernels of the cuda backend. core/kernels.def documents each kernel.
#pragma once

#include "core/backend.h"

namespace plumb::cuda {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::cuda
