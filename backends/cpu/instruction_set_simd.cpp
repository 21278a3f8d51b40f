#include "backends/cpu/instruction_set.h"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace plumb::cpu {
namespace {

// Whether the system keeps the registers of these bits of XCR0 for each thread.
bool keeps([[maybe_unused]] unsigned states) {
#if HWY_ARCH_X86
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false;  // OSXSAVE
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & states) == states;
#else
  return false;
#endif
}

const char* of_processor() {
#if HWY_ARCH_X86
  constexpr unsigned avx512 = 0xe6, amx = 0x60000;
  unsigned a, b, c, d;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & d >> 24 & 1) && keeps(amx)) return "AMX";  // AMX-BF16, AMX-TILE
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) && keeps(avx512)) return "bf16";         // AVX512-BF16
#endif
  return "";
}

// What ONEDNN_MAX_CPU_ISA (or DNNL_MAX_CPU_ISA, its name before) leaves of `found`.
const char* allowed(const char* found) {
  const char* given = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!given) given = std::getenv("DNNL_MAX_CPU_ISA");
  if (!given) return found;
  std::string most(given);
  std::ranges::transform(most, most.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::array without{"SSE41", "AVX", "AVX2", "AVX2_VNNI", "AVX2_VNNI_2", "AVX512_MIC", "AVX512_MIC_4OPS", "AVX512_CORE", "AVX512_CORE_VNNI"};
  if (std::ranges::find(without, most) != without.end()) return "";
  return most == "AVX512_CORE_BF16" && *found ? "bf16" : found;
}

}  // namespace

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

const char* bf16_instructions() {
  static const char* const found = allowed(of_processor());
  return found;
}

}  // namespace plumb::cpu
