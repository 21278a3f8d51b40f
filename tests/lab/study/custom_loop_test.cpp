// Tests of studies whose bodies have their own training loop, and of the detection of divergence.
#include "experiments/vision/study.h"

#include <cmath>
#include <map>
#include <sstream>

#include "experiments/lab/train/divergence.h"
#include "plumb/plumb.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

TEST_CASE("a training has diverged if a number is not finite or the loss stays above ten times chance") {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::reference});
  for (const auto& [loss, gradient] : {std::pair{infinity, 1.0}, {std::nan(""), 1.0}, {1.0, infinity}})
    CHECK(DivergenceWatch(2).observe(0, loss, gradient));
  std::int64_t at = 0;
  DivergenceWatch watch(2), patient(2, 0);
  const double limit = 20;
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int step = 0; step < 19; ++step) CHECK_FALSE(watch.observe(at++, limit + 0.1, 1));
    if (repeat == 0) CHECK_FALSE(watch.observe(at++, limit - 0.1, 1));  // a loss below the limit restarts the count
  }
  CHECK(watch.observe(at++, limit + 0.1, 1));
  CHECK(watch.reason([] { return Tensor(); }) == "loss above 20, 10 times chance (2), for 20 steps");
  CHECK(watch.is_bad());
  for (int step = 0; step < 30; ++step) CHECK_FALSE(patient.observe(at++, 1e30, 1));
  CHECK(patient.observe(at++, infinity, 1));

  DivergenceWatch finite(2);
  CHECK(finite.observe(at++, infinity, 1));
  const Tensor zero = variable(tensor({0.0}, {1}));
  CHECK_THAT(finite.reason([&] { return sum(log(zero)); }), contains("log"));
}

TEST_CASE("diverged seeds are counted and left out of the statistics, also after a resume") {
  const TemporaryFolder folder;
  int bodies = 0;
  const auto run = [&](const Words& more) {
    return call(
        folder.path(),
        [&](int argc, const char* const* argv) {
          return vision::Study("study", "A study.", {.network = false, .optimization = false})
              .run(argc, argv, [&](lab::Trial& trial) {
                ++bodies;
                if (trial.seed() == 2) trial.note("a note");
                trial.log({{"loss", trial.seed() == 3 ? 4.0 : 2.0},
                           {"odd", trial.seed() == 2   ? -std::nan("")
                                   : trial.seed() == 1 ? 100
                                                       : 1}});
                if (trial.seed() == 1) trial.mark_diverged(5, "because");
              });
        },
        with({"--seeds", "0..3", "--steps", "3", "--no-progress", "--out", "run"}, more));
  };
  const Ended first = run({});
  INFO(first.err << first.out);
  CHECK(first.status == 0);
  CHECK_THAT(first.err, contains("seed 1") && contains("diverged at step 5: because") && contains("a note\n") &&
                            contains("odd not finite") && !contains("nan"));
  CHECK_THAT(first.out, contains("diverged             1 of 4 seeds: seed 1 at step 5\n") && contains("2.6667 ") &&
                            contains("n = 3") && contains(" 1 ± 0  n = 2") && !contains("nan"));
  const std::string csv =
      "seed,status,steps,seconds,loss,odd,diverged_at\n0,ok,0,0,2,1,\n1,diverged,0,0,2,100,5\n2,ok,0,0,2,,\n3,ok,0,0,4,"
      "1,\n";
  CHECK(read_file(folder / "run/results.csv") == csv);
  CHECK_THAT(read_file(folder / "run/metrics.jsonl"),
             contains("{\"seed\":1,\"step\":5,\"diverged_at\":5,\"divergence\":\"because\"}\n"));
  CHECK_THAT(read_file(folder / "run/report.html"), contains("</html>") && contains("A study."));
  const Ended again = run({"--resume"});
  CHECK(again.status == 0);
  CHECK(bodies == 4);
  CHECK(again.out == first.out);
  CHECK(read_file(folder / "run/results.csv") == csv);
}

TEST_CASE("a logged loss or gradient norm that is not finite ends its trial as diverged") {
  const TemporaryFolder folder;
  const double nan = std::nan("");
  std::map<std::uint64_t, int> steps;
  const auto main = [&](int argc, const char* const* argv) {
    return vision::Study("study", "A study.", {.network = false, .optimization = false})
        .run(argc, argv, [&](lab::Trial& trial) {
          const Tensor zero = variable(tensor({0.0}, {1}));
          const auto log_of_zero = [&] { return sum(log(zero)); };
          for (lab::Step& at : trial.loop()) {
            const std::int64_t step = at.number();
            ++steps[trial.seed()];
            const bool bad = step == 2;
            if (trial.seed() == 0) trial.log({{"loss", 1}, {"ratio", nan}});  // the value "ratio" is not a loss
            if (trial.seed() == 1) trial.log({{"loss", bad ? nan : 1}});
            if (trial.seed() == 2) trial.trace({{"loss", 1}, {"grad_norm", bad ? INFINITY : 1}});
            if (trial.seed() == 3) trial.log({{"loss", bad ? -INFINITY : 1}});
            if (trial.seed() == 3 && bad && trial.check_divergence(backward(log_of_zero()), log_of_zero))
              return;  // the reason of this call replaces the reason from the log
            if (trial.seed() == 4) trial.log({{"loss", 1}});
            trial.log({{"of_step", static_cast<double>(step)}});
          }
          trial.measure({{"val_loss", trial.seed() == 4 ? nan : 1.0}});
          trial.measure({{"after", 1}});
        });
  };
  const Ended e = call(folder.path(), main, {"--seeds", "0..4", "--steps", "4", "--no-progress", "--out", "run"});
  INFO(e.err << e.out);
  CHECK(e.status == 0);
  CHECK(steps == std::map<std::uint64_t, int>{{0, 4}, {1, 3}, {2, 3}, {3, 3}, {4, 4}});
  CHECK_THAT(e.err, contains("diverged at step 2: loss is not finite") &&
                        contains("diverged at step 2: grad_norm is not finite") &&
                        contains("diverged at step 2: [log]") &&
                        contains("diverged at step 3: val_loss is not finite"));
  CHECK_THAT(e.out, contains("4 of 5 seeds: seed 1 at step 2"));
  std::istringstream rows(read_file(folder / "run/results.csv"));
  std::vector<std::string> outcomes;
  for (std::string row; std::getline(rows, row);) outcomes.push_back(row);
  REQUIRE(outcomes.size() == 6);
  CHECK(outcomes[0] == "seed,status,steps,seconds,loss,ratio,of_step,val_loss,after,diverged_at");
  CHECK(outcomes[1].ends_with(",1,,3,1,1,"));
  CHECK(outcomes[2].ends_with(",,,1,,,2"));
  CHECK(outcomes[3].ends_with(",,,1,,,2"));
  CHECK(outcomes[5].ends_with(",1,,3,,,3"));
  for (int seed = 0; seed < 5; ++seed) CHECK_THAT(outcomes[seed + 1], contains(seed == 0 ? ",ok," : ",diverged,"));
  CHECK_THAT(
      read_file(folder / "run/metrics.jsonl"),
      contains("{\"seed\":1,\"step\":2,\"loss\":null,\"diverged_at\":2,\"divergence\":\"loss is not finite\"}\n"));
}

TEST_CASE("all values that a loop logs in a step form one line of metrics.jsonl") {
  const TemporaryFolder folder;
  const auto main = [&](int argc, const char* const* argv) {
    return vision::Study("study", "A study.", {.network = false, .optimization = false})
        .run(argc, argv, [&](lab::Trial& trial) {
          for (lab::Step& at : trial.loop()) {
            const std::int64_t step = at.number();
            trial.log({{"loss", 1}, {"both", 1}});
            trial.trace({{"norm", 2}, {"both", 2}});
            if (step == 2) trial.mark_diverged(1, "as seen in step 1");
          }
        });
  };
  const Ended e = call(folder.path(), main, {"--steps", "4", "--no-progress", "--out", "run"});
  CHECK(e.status == 0);
  const std::string line = "\"loss\":1.0,\"both\":2.0,\"norm\":2.0";
  CHECK(read_file(folder / "run/metrics.jsonl") ==
        fmt::format("{{\"seed\":0,\"step\":0,{0}}}\n{{\"seed\":0,\"step\":1,{0},\"diverged_at\":1,\"divergence\":\"as "
                    "seen in step 1\"}}\n"
                    "{{\"seed\":0,\"step\":2,{0}}}\n",
                    line));
}

TEST_CASE("the table shows the chosen values or the first eight and the number of the others") {
  const TemporaryFolder folder;
  const auto table = [&](const std::vector<std::string>& show, int values) {
    const Ended e = call(
        folder.path(),
        [&](int argc, const char* const* argv) {
          vision::Study study("study", "A study.", {.network = false, .optimization = false});
          study.columns(show);
          return study.run(argc, argv, [&](lab::Trial& trial) {
            for (int i = 0; i < values; ++i) trial.log({{"v" + std::to_string(i), i}});
          });
        },
        {"--seeds", "0..1", "--steps", "1", "--no-progress", "--overwrite", "--out", "run"}, "/somewhere/my_study");
    CHECK(e.status == 0);
    CHECK((e.err.find("v8") != std::string::npos) == !show.empty());
    return e.out;
  };
  table({"v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8"}, 12);
  const std::string few = table({}, 8), many = table({}, 12), asked = table({"v8", "absent"}, 12);
  CHECK_THAT(few, contains("v7 ") && !contains("more value"));
  CHECK_THAT(many, contains("v7 ") && !contains("v8 ") && contains("4 more values in run/results.csv"));
  CHECK_THAT(asked, contains("v8 ") && !contains("v7 ") && contains("never logged") && contains("11 more values in"));
  CHECK_THAT(asked, contains("data: glyphs, 12800 training images, 2000 validation images: the generated test set"));
  // run.json has the command line, and the name of the experiment instead of the program.
  const std::string run = read_file(folder / "run/run.json");
  CHECK_THAT(run, contains("\"experiment\": \"study\"") && contains("\"command_line\": \"my_study --seeds 0..1") &&
                      contains("\"data\": \"glyphs, 12800 training images"));
  const auto help = [](int argc, const char* const* argv) {
    return vision::Study("study", "A study.", {.network = false, .optimization = false})
        .run(argc, argv, [](lab::Trial&) {});
  };
  CHECK_THAT(call(folder.path(), help, {"--help"}, "/somewhere/my_study").out, contains("Usage: my_study [options]"));
}

TEST_CASE("a seed diverges at most once and only through mark_diverged") {
  const TemporaryFolder folder;
  const auto error = [&](const std::function<void(lab::Trial&)>& body) {
    const Ended e = call(
        folder.path(),
        [&](int argc, const char* const* argv) {
          return vision::Study("study", "A study.", {.network = false, .optimization = false}).run(argc, argv, body);
        },
        {"--steps", "1", "--no-progress", "--overwrite", "--out", "run"});
    CHECK(e.status == 1);
    return e.err;
  };
  CHECK_THAT(error([](lab::Trial& trial) {
               trial.log({{"diverged_at", 1}});
             }),
             contains("expected a name other than seed, step, steps, seconds, status, diverged_at, divergence and "
                      "steps_to_..."));
  CHECK_THAT(error([](lab::Trial& trial) {
               trial.mark_diverged(1, "a");
               trial.mark_diverged(2, "b");
             }),
             contains("[diverged] expected one divergence per trial, got a second at step 2"));
}
