// The instruction set that the kernels use, chosen when the program starts.
#pragma once

namespace plumb::cpu {

// Detects the processor's features once. Without this call, each dispatch of Highway would detect them again (13 us in
// a virtual machine).
void choose_instruction_set();
const char* instruction_set();  // name of the instruction set, such as "AVX-512"

}  // namespace plumb::cpu
