#include "backends/cpu/instruction_set.h"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "core/backend.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif

namespace plumb::cpu {
namespace {

// Returns whether the operating system saves the registers with these bits of XCR0 for each thread.
bool keeps([[maybe_unused]] unsigned states) {
#if HWY_ARCH_X86
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1))
    return false;  // the system does not support XSAVE (OSXSAVE is 0)
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & states) == states;
#else
  return false;
#endif
}

struct Features {
  bool amd = false, avx512_bf16 = false, amx_bf16 = false;
};

Features of_processor() {
  Features f;
#if HWY_ARCH_X86
  constexpr unsigned avx512 = 0xe6, amx = 0x60000, auth = 0x68747541;
  unsigned a, b, c, d;
  f.amd = __get_cpuid(0, &a, &b, &c, &d) && b == auth;  // the vendor is "AuthenticAMD"
  f.amx_bf16 =
      __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & d >> 24 & 1) && keeps(amx);  // both AMX-BF16 and AMX-TILE
  f.avx512_bf16 = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) && keeps(avx512);
#endif
  return f;
}

// Returns the features of `f` that ONEDNN_MAX_CPU_ISA (formerly DNNL_MAX_CPU_ISA) allows.
Features allowed(Features f) {
  const char* given = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (!given) given = std::getenv("DNNL_MAX_CPU_ISA");
  if (!given) return f;
  std::string most(given);
  std::ranges::transform(most, most.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const std::array without{"SSE41",           "AVX",         "AVX2",
                           "AVX2_VNNI",       "AVX2_VNNI_2", "AVX512_MIC",
                           "AVX512_MIC_4OPS", "AVX512_CORE", "AVX512_CORE_VNNI"};
  const bool none = std::ranges::find(without, most) != without.end();
  f.avx512_bf16 = f.avx512_bf16 && !none;
  f.amx_bf16 = f.amx_bf16 && !none && most != "AVX512_CORE_BF16" && most != "AVX512_CORE_FP16" && most != "AVX10_1_512";
  return f;
}

// The instructions that multiply bf16 matrices. The first row that fits the processor applies. The comments give the
// time of a training step in bf16 relative to the time in f32 (bench_step). The first number is for dim 192 and depth
// 12, the second for dim 64 and depth 48.
struct Row {
  bool (*fits)(const Features&);
  Bf16Products products;
};
constexpr Row rows[] = {
    // Xeon with AMX: the time of a step was not measured. Large products ran 4 to 5.5 times as fast as in f32.
    {[](const Features& f) { return f.amx_bf16; }, {"AMX", true}},
    // EPYC, Zen 4: a step in bf16 takes 0.61 (dim 192) and 0.77 (dim 64) times as long as in f32 (at commit 6efe73c,
    // when all threads packed weights).
    {[](const Features& f) { return f.amd && f.avx512_bf16; }, {"AVX-512 bf16", true}},
    // Xeon with AVX-512 bf16 instructions but without AMX: with the bf16 instructions, a step in bf16 takes 1.74 (dim
    // 192) and 1.61 (dim 64) times as long as in f32. Large products then run at 0.6 times the speed of f32. With f32
    // instructions, the time was not measured.
    // EPYC, Zen 3, which has only AVX2: with f32 instructions, a step in bf16 takes 0.97 to 1.11 (dim 192) and 1.03 to
    // 1.09 (dim 64) times as long as in f32. These times are equal within noise.
    {[](const Features&) { return true; }, {"f32 instructions", false}},
};

}  // namespace

void choose_instruction_set() { hwy::GetChosenTarget().Update(hwy::SupportedTargets()); }

const char* instruction_set() {
  const std::int64_t best = hwy::SupportedTargets() & HWY_TARGETS;
  switch (best & -best) {  // the lowest bit stands for the best instruction set
    case HWY_AVX3:
      return "AVX-512";
    case HWY_AVX2:
      return "AVX2";
    default:
      return hwy::TargetName(best & -best);
  }
}

}  // namespace plumb::cpu

namespace plumb {

const Bf16Products& bf16_products() {
  static const Bf16Products& found =
      std::ranges::find_if(cpu::rows, [f = cpu::allowed(cpu::of_processor())](const cpu::Row& row) {
        return row.fits(f);
      })->products;
  return found;
}

}  // namespace plumb
