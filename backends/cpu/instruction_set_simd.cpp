#include "backends/cpu/instruction_set.h"

#include <hwy/targets.h>

#include <cstdint>

namespace plumb::cpu {

void choose_instruction_set() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }

const char* instruction_set() {
  const std::int64_t best = hwy::SupportedTargets() & HWY_TARGETS;
  switch (best & -best) {  // lower bits are better
    case HWY_AVX3:
      return "AVX-512";
    case HWY_AVX2:
      return "AVX2";
    default:
      return hwy::TargetName(best & -best);
  }
}

}  // namespace plumb::cpu
