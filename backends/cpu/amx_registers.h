// The kernels that use the processor's tile registers.
#pragma once

#include "backends/cpu/amx.h"

namespace plumb::cpu {

// Null if the compiler does not know AMX. Other code calls amx_kernels(), which knows whether the kernels may run.
const AmxKernels* amx_registers();

}  // namespace plumb::cpu
