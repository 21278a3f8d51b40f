// The readers of bytes from outside, as functions for fuzzing.
//
// fuzz_one(bytes) gives the bytes to a reader as a file from outside. An Error is a right answer to wrong bytes. Any
// other exception, a crash, a call of minutes or the use of much memory is a fault of the reader. The programs
// fuzz_readers (main.cpp, any compiler) and fuzz_<reader> of tools/fuzz.sh (libFuzzer, clang) call these functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumb::test {

using Bytes = std::vector<std::uint8_t>;

struct FuzzedReader {
  const char* name;
  void (*fuzz_one)(std::span<const std::uint8_t> bytes);
  std::vector<Bytes> (*seeds)();  // small valid files, from which fuzzing starts
};

// All readers, in the order of their names.
std::span<const FuzzedReader> fuzzed_readers();
// The reader of this name. Throws Error if there is none; the message names the readers.
const FuzzedReader& fuzzed_reader(const char* name);

}  // namespace plumb::test
