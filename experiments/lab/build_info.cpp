#include "experiments/lab/build_info.h"

#include <fmt/format.h>

#include "core/atomic_file.h"
#include "experiments/lab/hash.h"

#if __has_include("plumb/build_info.h")
#include "plumb/build_info.h"  // CMake generates this header
#else
#define PLUMB_VERSION "0.0.0"
#define PLUMB_COMMIT "unknown"
#define PLUMB_BUILD "unknown"
#endif

namespace plumb::lab {
namespace {

const char* program_code = nullptr;

}  // namespace

const char* version() { return PLUMB_VERSION; }
const char* commit() { return PLUMB_COMMIT; }
const char* build() { return PLUMB_BUILD; }

void set_program_code(const char* code) { program_code = code; }

std::string code_hash() {
  static const std::string hash =
      hash_of(program_code ? fmt::format("{} {}", library_code(), program_code) : read_file("/proc/self/exe"));
  return hash;
}

}  // namespace plumb::lab
