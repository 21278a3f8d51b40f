// Declarations of the cuda backend's kernels; what each means is written at the list, core/kernels.def.
#pragma once

#include "core/backend.h"

namespace plumb::cuda {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::cuda
