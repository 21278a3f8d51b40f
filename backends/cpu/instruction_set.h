// The instruction set that the kernels use. The set is chosen when the program starts.
#pragma once

namespace plumb::cpu {

// Detects the features of the processor once. Without this call, each dispatch of Highway would detect the features
// again (13 us in a virtual machine).
void choose_instruction_set();
const char* instruction_set();  // returns the name of the instruction set, such as "AVX-512"

}  // namespace plumb::cpu
