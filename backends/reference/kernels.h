// Declares the reference kernels. core/kernels.def documents each kernel.
#pragma once

#include "core/backend.h"

namespace plumb::reference {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::reference
