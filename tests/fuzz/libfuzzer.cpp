// The entry of libFuzzer: the variable PLUMB_FUZZ_READER names the reader.
#include <cstdlib>

#include "core/backend.h"
#include "tests/fuzz/readers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const plumb::test::FuzzedReader& reader = [&]() -> const plumb::test::FuzzedReader& {
    plumb::set_num_threads(1);
    const char* const name = std::getenv("PLUMB_FUZZ_READER");
    return plumb::test::fuzzed_reader(name ? name : "");
  }();
  reader.fuzz_one({bytes, size});
  return 0;
}
