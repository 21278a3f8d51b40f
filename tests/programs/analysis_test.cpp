// Runs docs/analysis.py on a study folder, if python3 has pandas and matplotlib.
#include "tests/programs/program.h"
#include "tests/support/catch.h"

using namespace plumb::test;

TEST_CASE("docs/analysis.py reads a run folder with pandas and draws a figure") {
  const TemporaryFolder folder;
  // The first python3 on the PATH that has both packages; if there is none, the python3 of the system.
  std::string python, why;
  for (const char* candidate : {"python3", "/usr/bin/python3"}) {
    const Finished there = run(folder.path(), std::string(candidate) + " -c 'import pandas, matplotlib'");
    if (there.status == 0 && python.empty()) python = candidate;
    if (why.empty() && there.err.size() > 1) why = there.err.substr(there.err.rfind('\n', there.err.size() - 2) + 1);
  }
  if (python.empty()) PLUMB_SKIP("python3 lacks pandas or matplotlib, so docs/analysis.py was not run: " + why);
  const Finished trained =
      run(folder.path(),
          program("depth_stability") +
              " --gates pre,rezero,post --depths 1,2 --dim 8 --batch 4 --steps 4 --seeds 0..2 --no-progress --out a");
  INFO(trained.err);
  REQUIRE(trained.status == 0);
  const Finished read = run(folder.path(), python + " " + plumb::test::source_dir() + "/docs/analysis.py a losses.png");
  INFO(read.err << read.out);
  REQUIRE(read.status == 0);
  CHECK(slurp(folder / "losses.png").starts_with("\x89PNG"));
  CHECK_THAT(read.out, contains("against the control: ") && contains("half_width"));
  // If the control is not among the methods, all pairs are compared.
  const Finished pairs =
      run(folder.path(),
          program("depth_stability") +
              " --gates rezero,layerscale --depths 1,2 --dim 8 --batch 4 --steps 4 --seeds 0..2 --no-progress --out b");
  INFO(pairs.err);
  REQUIRE(pairs.status == 0);
  const Finished of_pairs =
      run(folder.path(), python + " " + plumb::test::source_dir() + "/docs/analysis.py b losses.png");
  REQUIRE(of_pairs.status == 0);
  CHECK_THAT(of_pairs.out, contains("all pairs: ") && !contains(" of 0 decided") && !contains("Empty DataFrame"));
  // Methods may have names that pandas would read as missing values or numbers.
  const Finished named = run(
      folder.path(),
      program("depth_stability") +
          " --gates pre,rezero,post,layerscale --depths 1 --dim 8 --batch 4 --steps 4 --seeds 0..2 --no-progress --out "
          "c && sed -i 's/\\bpre\\b/null/g; s/\\brezero\\b/nan/g; s/\\bpost\\b/1e5/g; s/\\blayerscale\\b/007/g' "
          "c/results.csv c/comparisons.csv c/metrics.jsonl && " +
          python + " " + plumb::test::source_dir() + "/docs/analysis.py c losses.png");
  INFO(named.err << named.out);
  REQUIRE(named.status == 0);
  CHECK_THAT(named.out, contains(" of 3 decided"));
  const std::string means = named.out.substr(named.out.find("half_width"));
  for (const char* name : {"null", "nan", "1e5", "007"}) {
    INFO(name);
    CHECK_THAT(means.substr(0, means.find("against")), contains(name));
  }
  // The means in the output must equal those of results.csv.
  std::map<std::string, std::vector<double>> losses;
  for (const auto& row : rows_of(slurp(folder / "a/results.csv")))
    if (row.at("status") == "ok")
      losses[row.at("gate") + " " + row.at("depth")].push_back(std::stod(row.at("train_loss")));
  CHECK(losses.size() == 6);
  for (const auto& [trial, values] : losses) {
    INFO(trial);
    double sum = 0;
    for (const double v : values) sum += v;
    char mean[32];
    std::snprintf(mean, sizeof mean, "%.6f", sum / static_cast<double>(values.size()));
    CHECK_THAT(read.out, contains(mean));
  }
}
