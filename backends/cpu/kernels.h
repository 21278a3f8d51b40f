// Declarations of the cpu kernels; what each means is written at the list, core/kernels.def. f32, with the mixtures
// with bf16 that the table allows except in products: backend.cpp sends the rest to the reference kernels.
//
// Promise: for equal arguments the bits do not depend on the number of threads, except where oneDNN's do (onednn.h).
// They do depend on the instruction set.
#pragma once

#include "core/backend.h"

namespace plumb::cpu {

#define PLUMB_KERNEL(dtypes, name, parameters) void name parameters;
#include "core/kernels.def"

}  // namespace plumb::cpu
