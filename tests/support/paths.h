// The places of the tests' data and of the programs that tests run. No path is compiled in, so that the test programs
// run on another machine.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace plumb::test {

// The folder with bin/ and tests/: the variable PLUMB_BINARY_DIR, or the parent of the folder of this test program.
inline std::string binary_dir() {
  if (const char* const given = std::getenv("PLUMB_BINARY_DIR")) return given;
  return std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path().string();
}

// The folder with the sources, or with the part of them that tests read: the variable PLUMB_SOURCE_DIR, or the path in
// the file source_dir of a build folder, or binary_dir() itself, as in a bundle of programs.
inline std::string source_dir() {
  if (const char* const given = std::getenv("PLUMB_SOURCE_DIR")) return given;
  std::ifstream file(std::filesystem::path(binary_dir()) / "source_dir");
  const std::string path{std::istreambuf_iterator<char>(file), {}};
  return path.empty() ? binary_dir() : path;
}

// The folder of data outside the repository, which may be missing: the variable PLUMB_TEST_DATA, or shared/ beside the
// sources. data/ has the published data sets, reference/cases the answers of PyTorch and timm.
inline std::filesystem::path outside_data() {
  if (const char* const given = std::getenv("PLUMB_TEST_DATA")) return given;
  return std::filesystem::path(source_dir()) / ".." / "shared";
}

}  // namespace plumb::test
