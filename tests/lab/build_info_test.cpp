// Tests of the list of files that the code hash covers.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace fs = std::filesystem;

namespace {

// The files that the hash of the library covers, as paths in the repository.
std::vector<std::string> hashed_files() {
  std::ifstream list(fs::path(plumb::test::binary_dir()) / "code_hash/plumb.txt");
  std::vector<std::string> files;
  std::string line;
  std::getline(list, line);  // the first line has the compiler and its flags
  while (std::getline(list, line)) files.push_back(line);
  return files;
}

const std::string lab_folder = "experiments/lab/";

bool is_pretrained_weights(const std::string& file) {
  return file.starts_with(lab_folder + "study/pretrained_weights.");
}

}  // namespace

TEST_CASE("the code hash covers the files that decide the numbers of a trial, and no file that only judges or shows") {
  const std::vector<std::string> files = hashed_files();
  for (const char* file :
       {"core/backend.h", "core/kernels.def", "autograd/ops/gelu.cpp", "nn/gates/layerscale.cpp",
        "backends/cpu/gelu_simd.cpp", "experiments/lab/train/train.cpp", "experiments/vision/data/loader.cpp",
        "experiments/lab/options/optimizer_options.cpp", "experiments/lab/signals/probe.cpp",
        "experiments/vision/programs/pretrained_weights.cpp", "experiments/depth_stability/depth_stability.cpp"}) {
    REQUIRE(fs::exists(fs::path(plumb::test::source_dir()) / file));
    if (std::ranges::find(files, file) == files.end()) FAIL_CHECK(file << " is not covered");
  }
  for (const std::string& file : files) {
    for (const char* room : {"cli/", "plot/", "report/", "stats/", "study/"})
      if (file.starts_with(lab_folder + room) && !is_pretrained_weights(file)) FAIL_CHECK(file);
    if (file.ends_with(".css") || file.ends_with(".js")) FAIL_CHECK(file);
  }
}

TEST_CASE("the files that the code hash covers in experiments/lab use no verdicts and no reports") {
  for (const std::string& file : hashed_files()) {
    if (!file.starts_with(lab_folder) || is_pretrained_weights(file)) continue;
    std::ifstream in(fs::path(plumb::test::source_dir()) / file);
    REQUIRE(in.good());
    for (std::string line; std::getline(in, line);)
      for (const char* room : {"report/", "stats/", "study/"})
        if (line.starts_with("#include \"" + lab_folder + room)) FAIL_CHECK(file << ": " << line);
  }
}

TEST_CASE("replay has the code hash of each study, whose function it calls") {
  const auto hash_file = [](const std::string& program) {
    std::ifstream in(fs::path(plumb::test::binary_dir()) / "code_hash" / (program + ".cpp"));
    REQUIRE(in.good());
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  CHECK(hash_file("replay") == hash_file("depth_stability"));
}
