// Declares the cpu kernels. core/kernels.def documents each kernel and the dtypes that its cpu version accepts.
// backend.cpp sends all other calls to the reference kernels.
//
// For equal arguments, the bits of a result do not depend on the number of threads. The only exception is
// product_over_rows() for f32 (onednn.h) without strict_determinism(). The bits of a result do depend on the
// instruction set.
#pragma once

#include "core/backend.h"

namespace plumb::cpu {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::cpu
