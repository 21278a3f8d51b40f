// Declares the cpu kernels; core/kernels.def documents each kernel. They accept f32 and the mixtures with bf16 that
// kernels.def allows. backend.cpp sends all other calls to the reference kernels.
//
// For equal arguments, the bits of a result do not depend on the number of threads, except where oneDNN's do
// (onednn.h). They do depend on the instruction set.
#pragma once

#include "core/backend.h"

namespace plumb::cpu {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::cpu
