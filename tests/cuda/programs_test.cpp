// Runs whole programs on the device, as a user starts them.
#include "tests/programs/program.h"

#include "nn/conformance/method_check.h"
#include "plumb/plumb.h"
#include "tests/programs/reference_cases.h"
#include "tests/support/cuda.h"

using namespace plumb;
using namespace plumb::test;
namespace fs = std::filesystem;

TEST_CASE("bin/parity has a column for the device in the cases of the repository and of PyTorch and timm",
          "[long][study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder here;
  const TemporaryFolder reference;
  std::vector<fs::path> folders{fs::path(test::source_dir()) / "tests/golden/cases"};
  if (link_reference_cases(reference.path())) folders.push_back(reference.path());
  for (const fs::path& cases : folders) {
    const Finished f = run(here.path(), program("parity") + " '" + cases.string() + "'");
    INFO(f.out << f.err);
    CHECK(f.status == 0);
    CHECK_THAT(f.out, contains("cuda fp32"));
    CHECK_THAT(f.out, contains("cuda bf16"));
    CHECK_THAT(f.out, contains(" passed, 0 failed"));
  }
}

TEST_CASE("bin/depth_stability on the device runs two trials at once and writes weights and a profile and a report",
          "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder here;
  const std::string words =
      " --gates pre,layerscale --depths 2 --dim 16 --batch 4 --steps 8 --eval-images 40 --no-progress";
  const Finished f =
      run(here.path(), program("depth_stability") + " --device cuda --jobs 2 --save-weights --out two" + words);
  INFO(f.out << f.err);
  REQUIRE(f.status == 0);
  CHECK(fs::exists(here.path() / "two/report.html"));
  CHECK(std::distance(fs::directory_iterator(here.path() / "two/weights"), fs::directory_iterator()) == 2);
  const Finished one = run(here.path(), program("depth_stability") + " --device cuda --profile --out one" + words);
  INFO(one.err);
  REQUIRE(one.status == 0);
  CHECK_THAT(slurp(here.path() / "one/profile.txt"), contains("cuda, per step: "));
  const auto both = rows_of(slurp(here.path() / "two/results.csv")),
             alone = rows_of(slurp(here.path() / "one/results.csv"));
  REQUIRE(both.size() == 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(both[i].at("train_loss") == alone.at(i).at("train_loss"));  // the same stream serves both trials
}

TEST_CASE("examples, bin/vit and bin/passport on the device give the same results as on the cpu", "[long][study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder here;
  const std::string tiny = " --steps 2 --batch 4 ";
  struct Program {
    std::string name, words, table = "results.csv";
  };
  for (const auto& [name, words, table] : std::vector<Program>{
           {"vit", tiny + "--model cait --dim 8 --heads 2 --depth 1 --depth-token-only 1 --patch 8 --eval-images 20 "
                          "--drop-key 0.2 --attn-drop 0.2"},
           {"passport", "--batch 4 --gates pre,layerscale --depths 2 --dim 8 --patch 16 --probes 2", "layers.csv"},
           {"example_own_gate", tiny + "--gates tanh_gate --depths 1 --dim 8 --eval-images 20"},
           {"example_watch_signals", tiny},
           {"example_gradient_signal", tiny}}) {
    const auto results = [&](const std::string& device) {
      const std::string out = name + "-" + device;
      const Finished f = run(here.path(), program(name) + " " + words + " --device " + device + " --out " + out);
      INFO(f.out << f.err);
      REQUIRE(f.status == 0);
      return rows_of(slurp(here.path() / out / table));
    };
    const auto cuda = results("cuda"), cpu = results("cpu");
    REQUIRE(cuda.size() == cpu.size());
    REQUIRE_FALSE(cpu.empty());
    for (std::size_t i = 0; i < cpu.size(); ++i)
      for (const auto& [column, value] : cpu[i]) {
        if (column == "seconds" || column == "images_per_second") continue;
        INFO(name << ", " << column << ": " << cuda[i].at(column) << " and " << value);
        char* end = nullptr;
        const double expected = std::strtod(value.c_str(), &end);
        CHECK((value.empty() || *end != '\0'
                   ? cuda[i].at(column) == value
                   : std::abs(std::stod(cuda[i].at(column)) - expected) <= 1e-4 * std::abs(expected) + 1e-9));
      }
  }
  for (const char* const example : {"example_own_gate --gates tanh_gate", "example_highway_gate --gates highway"}) {
    const Finished f = run(here.path(), program(example) + " --check-gates --device cuda");
    INFO(f.out << f.err);
    CHECK(f.status == 0);
  }
}

TEST_CASE("bin/replay repeats a diverged trial of the device on the device and in f64", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder here;
  const std::string words =
      " --gates pre --depths 2 --dim 8 --batch 4 --lrs 1000 --steps 12 --eval-images 20 --no-progress --out a";
  const Finished trained = run(here.path(), program("depth_stability") + " --device cuda" + words);
  INFO(trained.out << trained.err);
  REQUIRE(trained.status == 0);
  const Finished f = run(here.path(), program("replay") + " a 'pre depth 2 lr 1000 seed 0'");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
  CHECK_THAT(f.out, contains("recorded as diverged at step 10") && contains("fp32 from step 0: diverged at step 10") &&
                        contains("\nnumerical: "));
}

TEST_CASE("bin/bench_step on the device", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder here;
  const Finished f =
      run(here.path(), program("bench_step") + " --device cuda --depth 2 --dim 24 --batch 4 --steps 2 --warmup 1");
  INFO(f.out << f.err);
  CHECK(f.status == 0);
}

TEST_CASE("the gate kit on the device", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const DefaultsScope defaults({DType::f32, Device::cuda});
  for (const char* const gate : {"pre", "layerscale", "rezero", "value_residual"}) {
    const nn::MethodReport report = nn::check_method(gate);
    INFO(report.text());
    CHECK(report.passed());
  }
}
