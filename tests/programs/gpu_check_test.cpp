// Runs tools/gpu_check.sh without a GPU, with programs that pass, fail, never end or are missing, and
// tools/gpu_bundle.sh.
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

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

std::string check_script() { return test::source_dir() + "/tools/gpu_check.sh"; }

}  // namespace

TEST_CASE("tools/gpu_check.sh records every stage and continues after failures and ends with a table and an archive") {
  const TemporaryFolder here;
  const fs::path build = here.path() / "build";
  for (const char* const name : {"depth_stability", "vit", "passport", "replay", "example_own_gate",
                                 "example_highway_gate", "example_watch_signals", "example_gradient_signal"})
    executable(build / "bin" / name, "echo started");
  executable(build / "tests/cuda_tests", "[ \"$REQUIRE_GPU\" = 1 ] && echo 'All tests passed'");
  executable(build / "tests/ops_tests", "[ \"$1\" = --help ] && exit; echo 'it is wrong'; exit 3");
  executable(build / "tests/backends_tests", "[ \"$1\" = --help ] && exit; exec sleep 60");
  executable(build / "bin/parity", "echo '37 passed, 0 failed'");
  executable(build / "bin/bench_step", "echo '{\"seconds\": 1}'");
  executable(here.path() / "bin/nvidia-smi", "echo 'a GPU'");
  executable(here.path() / "bin/python3", "echo '{\"peer\": 1}'");
  const std::string check =
      "PATH='" + (here.path() / "bin").string() + "':$PATH PLUMB_GPU_CHECK_LIMIT=1 " + check_script();
  const Finished f = run(here.path(), check + " --build build --out out");
  INFO(f.out << f.err);
  CHECK(f.status == 1);
  const std::string results = slurp(here.path() / "out/results.tsv");
  for (const char* const line :
       {"environment\tpassed\t", "a GPU\n", "start\tpassed\t", "13 programs start\n", "memory\tpassed\t",
        "All tests passed\n", "kernels\tover 1 s\t", "ops\tfailed\t", "it is wrong\n", "parity\tpassed\t",
        "step-bf16\tpassed\t", "peer-fp32-compile\tpassed\t", "{\"peer\": 1}\n"})
    CHECK_THAT(results, contains(line));
  CHECK_THAT(f.out, contains("stage                    result        seconds  note") &&
                        contains("all logs: " + (here.path() / "out.tar.gz").string()));
  CHECK_THAT(slurp(here.path() / "out/ops.log"), contains("it is wrong"));
  CHECK(fs::exists(here.path() / "out.tar.gz"));

  // The same command leaves out what has ended, and still fails.
  CHECK(run(here.path(), check + " --build build --out out").status == 1);
  CHECK(slurp(here.path() / "out/results.tsv") == results);
  // Without time, nothing starts.
  CHECK(run(here.path(), check + " --build build --out out --stages rest --seconds 3").status == 1);
  const std::string again = slurp(here.path() / "out/results.tsv");
  CHECK(again.starts_with(results));
  CHECK_THAT(again.substr(results.size()),
             contains("studies\tnot started\t0\tmay take 1 s; the same command continues"));

  // A second command runs other stages and adds to the results.
  const Finished rest = run(here.path(), check + " --build build --out out --stages rest");
  INFO(rest.out << rest.err);
  CHECK(rest.status == 0);
  const std::string both = slurp(here.path() / "out/results.tsv");
  CHECK(both.starts_with(again));
  for (const char* const line : {"studies\tpassed\t", "memcheck\t", "step-dim64-bf16\tpassed\t",
                                 "peer-dim192-1024-fp32-graph\tpassed\t", "profile\tpassed\t"})
    CHECK_THAT(both, contains(line));

  // Another build gets its own folder.
  fs::remove(build / "bin/depth_stability");
  const Finished other = run(here.path(), check + " --build build --out out --stages profile");
  CHECK(other.status == 1);
  CHECK(other.err == "error: " + (here.path() / "out").string() +
                         " has results of another build or another GPU; choose another --out\n");
  CHECK(run(here.path(), check + " --build build --out incomplete --stages profile").status == 1);
  CHECK_THAT(slurp(here.path() / "incomplete/results.tsv"), contains("profile\tfailed\t0\tno "));

  const Finished wrong = run(here.path(), check_script() + " --speed");
  CHECK(wrong.status == 2);
  CHECK_THAT(wrong.err, contains("Usage: tools/gpu_check.sh"));
  const Finished unknown = run(here.path(), check_script() + " --stages ops,kernel");
  CHECK(unknown.status == 2);
  CHECK_THAT(unknown.err, contains("error: unknown stage 'kernel'; known: environment start "));
}

TEST_CASE("a dry run of tools/gpu_check.sh names each stage with its command and finds its files") {
  const TemporaryFolder here;
  const Finished f = run(here.path(), check_script() + " --dry-run --stages all --build '" + test::binary_dir() + "'");
  INFO(f.out << f.err);
  std::string stages;
  const std::regex name("(?:^|\n)([a-z0-9-]+) \\(at most [0-9]+ s\\): ");
  for (std::sregex_iterator at(f.out.begin(), f.out.end(), name), end; at != end; ++at) stages += (*at)[1].str() + " ";
  CHECK(stages ==
        "environment start cpu-ops cpu-parity cpu-step memory kernels ops training parity step-fp32 peer-fp32-eager "
        "peer-fp32-compile step-bf16 peer-bf16-eager peer-bf16-compile studies memcheck racecheck initcheck "
        "step-dim192-128-fp32 peer-dim192-128-fp32-eager peer-dim192-128-fp32-compile peer-dim192-128-fp32-graph "
        "step-dim192-128-bf16 peer-dim192-128-bf16-eager peer-dim192-128-bf16-compile peer-dim192-128-bf16-graph "
        "step-dim192-1024-fp32 peer-dim192-1024-fp32-eager peer-dim192-1024-fp32-compile peer-dim192-1024-fp32-graph "
        "step-dim192-1024-bf16 peer-dim192-1024-bf16-eager peer-dim192-1024-bf16-compile peer-dim192-1024-bf16-graph "
        "step-dim64-fp32 peer-dim64-fp32-eager peer-dim64-fp32-compile peer-dim64-fp32-graph step-dim64-bf16 "
        "peer-dim64-bf16-eager peer-dim64-bf16-compile peer-dim64-bf16-graph peer-fp32-graph peer-bf16-graph profile ");
  // This folder has all files of an ordinary build, so none is missing.
  CHECK_THAT(f.out, !contains("missing: "));
  CHECK(f.status == 0);
  CHECK_FALSE(fs::exists(here.path() / "gpu_check"));

  // Each pattern of names matches test cases, and together the patterns match all. Catch does not report a pattern that
  // matches nothing.
  const std::string tests = "'" + test::binary_dir() + "/tests/cuda_tests' --list-test-names-only ";
  std::set<std::string> checked;
  const std::regex patterns("\n(?:memory|training|studies) \\(at most [0-9]+ s\\): \\S+/cuda_tests (.*)");
  for (std::sregex_iterator at(f.out.begin(), f.out.end(), patterns), end; at != end; ++at) {
    std::istringstream list((*at)[1]);
    for (std::string pattern; std::getline(list, pattern, ',');) {
      INFO(pattern);
      std::istringstream names(run(here.path(), tests + "'" + pattern + "'").out);
      bool found = false;
      for (std::string test; std::getline(names, test); found = true) checked.insert(test);
      CHECK(found);
    }
  }
  const std::string all = run(here.path(), tests).out;
  CHECK(checked.size() == static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n')));

  const Finished usual = run(here.path(), check_script() + " --dry-run --build nowhere");
  CHECK(usual.status == 1);
  CHECK_THAT(usual.out, contains("  missing: nowhere/bin/parity\n"));
  int seconds = 0;
  const std::regex limit("\\(at most ([0-9]+) s\\)");
  for (std::sregex_iterator at(usual.out.begin(), usual.out.end(), limit), end; at != end; ++at)
    seconds += std::stoi((*at)[1]);
  CHECK(seconds > 400);  // of the default stages
  CHECK(seconds <= 570);
}

TEST_CASE("tools/gpu_bundle.sh refuses a build without nvcc in one line") {
  const TemporaryFolder here;
  fs::create_directories(here.path() / "build");
  std::ofstream(here.path() / "build/CMakeCache.txt") << "PLUMB_CUDA_BUILT:INTERNAL=none\n";
  const Finished f = run(here.path(), test::source_dir() + "/tools/gpu_bundle.sh out.tar.xz --build build");
  CHECK(f.status == 1);
  CHECK_THAT(f.err,
             contains("error: build has no CUDA backend; install nvcc (CUDA 12 or later), and build it with tests: "));
  CHECK(std::count(f.err.begin(), f.err.end(), '\n') == 1);
  CHECK_FALSE(fs::exists(here.path() / "out.tar.xz"));
}
