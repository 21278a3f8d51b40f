// Which instructions the kernels use, decided when the program starts.
#pragma once

namespace plumb::cpu {

// Asks the processor once; before it, each dispatch of Highway would ask again (13 us in a virtual machine).
void choose_instruction_set();
const char* instruction_set();  // "AVX-512"

}  // namespace plumb::cpu
