// The kernel table of the cpu backend. The table has cpu kernels for f32, and some for bf16 as well. All other calls
// use the reference kernels.
#include "core/backend.h"

#include <fstream>

#include "backends/cpu/instruction_set.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/route.h"
#include "backends/with_results.h"

namespace plumb {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

}  // namespace

const Kernels& cpu_kernels() {
  static const Kernels table = [] {
    cpu::choose_instruction_set();
    return Kernels{
#define PLUMB_KERNEL(dtypes, name, parameters) .name = with_results<cpu::dtypes<&Kernels::name, cpu::name>>,
#include "core/kernels.def"
    };
  }();
  return table;
}

std::string cpu_description() {
  return fmt::format("{}, {}, {} threads, {}", processor_name(), cpu::instruction_set(), num_threads(),
                     cpu::onednn_version());
}

}  // namespace plumb
