// The instruction set that the kernels use. The set is chosen when the program starts.
#pragma once

#include "core/backend.h"

namespace plumb::cpu {

// Detects the features of the processor once. Without this call, each dispatch of Highway would detect the features
// again (13 us in a virtual machine).
void choose_instruction_set();
const char* instruction_set();  // returns the name of the instruction set, such as "AVX-512"

// Whether kernels round to bf16 by the processor's instruction, which replaces denormal numbers by 0. True if the
// processor has AMX and this instruction, and the kernels use AVX-512.
extern bool rounds_by_instruction;

// The features of a processor that decide which instructions multiply bf16 matrices.
struct Features {
  bool amd = false, avx512_bf16 = false;
  bool amx = false;            // the processor has AMX with bf16, and nothing forbids its use
  bool amx_forbidden = false;  // the processor has AMX, but ONEDNN_MAX_CPU_ISA forbids it
  bool amx_refused = false;    // the processor has AMX, but the system does not let this process use it
};
// Returns the instructions for bf16 products of a processor with these features.
const Bf16Products& bf16_products_of(const Features& features);

}  // namespace plumb::cpu
