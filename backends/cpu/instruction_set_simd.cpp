#include "backends/cpu/instruction_set.h"

#include <hwy/targets.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "backends/cpu/amx.h"
#include "backends/cpu/amx_registers.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
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

// Asks the system to let this process use the tile registers of AMX, because the registers enlarge the frames of
// signals. Returns whether the process may use the registers.
bool may_use_amx() {
#if HWY_ARCH_X86 && defined(__linux__)
  constexpr long request_permission = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}

Features of_processor() {
  Features f;
#if HWY_ARCH_X86
  constexpr unsigned avx512 = 0xe6, amx = 0x60000, auth = 0x68747541;
  unsigned a, b, c, d;
  f.amd = __get_cpuid(0, &a, &b, &c, &d) && b == auth;  // the vendor is "AuthenticAMD"
  f.amx =
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
  f.amx_forbidden =
      f.amx && (none || most == "AVX512_CORE_BF16" || most == "AVX512_CORE_FP16" || most == "AVX10_1_512");
  f.amx = f.amx && !f.amx_forbidden;
  return f;
}

// Returns the features that the processor has and ONEDNN_MAX_CPU_ISA allows.
const Features& allowed_features() {
  static const Features f = allowed(of_processor());
  return f;
}

// Returns the features that this process may use. The first call asks the system for AMX, which enlarges the frames of
// signals. Therefore only bf16 calls this function.
const Features& features() {
  static const Features usable = [] {
    Features f = allowed_features();
    f.amx_refused = f.amx && !may_use_amx();
    f.amx = f.amx && !f.amx_refused;
    return f;
  }();
  return usable;
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
    {[](const Features& f) { return f.amx; }, {"AMX", true}},
    // EPYC, Zen 4: a step in bf16 takes 0.61 (dim 192) and 0.77 (dim 64) times as long as in f32 (at commit 6efe73c,
    // when all threads packed weights).
    {[](const Features& f) { return f.amd && f.avx512_bf16; }, {"AVX-512 bf16", true}},
    {[](const Features& f) { return f.amx_refused; }, {"f32 instructions (the system refuses AMX)", false}},
    {[](const Features& f) { return f.amx_forbidden; }, {"f32 instructions (ONEDNN_MAX_CPU_ISA forbids AMX)", false}},
    // Xeon with AVX-512 bf16 instructions but without AMX: with the bf16 instructions, a step in bf16 takes 1.74 (dim
    // 192) and 1.61 (dim 64) times as long as in f32. Large products then run at 0.6 times the speed of f32. With f32
    // instructions, a step takes 1.04 (dim 192) and 1.05 (dim 64) times as long as in f32.
    // EPYC, Zen 3, which has only AVX2: with f32 instructions, a step in bf16 takes 0.97 to 1.11 (dim 192) and 1.03 to
    // 1.09 (dim 64) times as long as in f32. These times are equal within noise.
    {[](const Features&) { return true; }, {"f32 instructions", false}},
};

const AmxKernels* replaced_amx_kernels = nullptr;  // by set_amx_kernels()

// Sets rounds_by_instruction.
void choose_rounding() {
  const bool avx512 = (hwy::SupportedTargets() & HWY_TARGETS & HWY_AVX3) != 0;  // the kernels have this form
  const Features& f = allowed_features();
  rounds_by_instruction = (f.amx || replaced_amx_kernels) && f.avx512_bf16 && avx512;
}

}  // namespace

const Bf16Products& bf16_products_of(const Features& features) {
  return std::ranges::find_if(rows, [&](const Row& row) { return row.fits(features); })->products;
}

const AmxKernels* amx_kernels() {
  if (replaced_amx_kernels) return replaced_amx_kernels;
  static const AmxKernels* const usual = features().amx ? amx_registers() : nullptr;
  return usual;
}
void set_amx_kernels(const AmxKernels* kernels) {
  replaced_amx_kernels = kernels;
  choose_rounding();
}

bool rounds_by_instruction = false;

void choose_instruction_set() {
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  choose_rounding();
}

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
  static const Bf16Products& found = cpu::bf16_products_of(cpu::features());
  return found;
}

}  // namespace plumb
