// Runs tools/gpu_check.sh without a GPU, with programs that pass, fail, never end or are missing.
#include <filesystem>

#include "core/atomic_file.h"
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

namespace {

void executable(const fs::path& file, const std::string& body) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "#!/bin/sh\n" << body << '\n';
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("tools/gpu_check.sh records every stage and continues after failures and ends with a table") {
  const TemporaryFolder here;
  const fs::path build = here.path() / "build";
  executable(build / "tests/cuda_tests", "[ \"$REQUIRE_GPU\" = 1 ] && echo 'All tests passed'");
  executable(build / "tests/ops_tests", "echo 'it is wrong'; exit 3");
  executable(build / "tests/backends_tests", "exec sleep 60");
  executable(build / "bin/parity", "echo '37 passed, 0 failed'");
  executable(build / "bin/bench_step", "echo '{\"seconds\": 1}'");
  executable(here.path() / "bin/nvidia-smi", "echo 'a GPU'");
  executable(here.path() / "bin/python3", "echo '{\"peer\": 1}'");
  const std::string command = "PATH='" + (here.path() / "bin").string() + "':$PATH PLUMB_GPU_CHECK_LIMIT=1 " +
                              std::string(PLUMB_SOURCE_DIR) +
                              "/tools/gpu_check.sh --build build --out out --peer peer.py";
  const Finished f = run(here.path(), command);
  INFO(f.out << f.err);
  CHECK(f.status == 1);
  const std::string results = slurp(here.path() / "out/results.tsv");
  for (const char* const line :
       {"environment\tpassed\t", "a GPU\n", "memory\tpassed\t", "All tests passed\n", "kernels\tover 1 s\t",
        "ops\tfailed\t", "it is wrong\n", "parity\tpassed\t", "step-bf16\tpassed\t", "peer-fp32-compile\tpassed\t",
        "{\"peer\": 1}\n", "profile\tfailed\t0\tno build/bin/depth_stability", "memcheck\tunavailable\t"})
    CHECK_THAT(results, contains(line));
  CHECK_THAT(f.out, contains("stage                result        seconds  note"));
  CHECK_THAT(slurp(here.path() / "out/ops.log"), contains("it is wrong"));

  const Finished wrong = run(here.path(), std::string(PLUMB_SOURCE_DIR) + "/tools/gpu_check.sh --speed");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("Usage: tools/gpu_check.sh"));
}
