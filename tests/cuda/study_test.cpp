// Runs whole studies on the device. The results are the results of the cpu, however late the numbers of a step are
// read.
#include "experiments/vision/study.h"

#include <signal.h>

#include <nlohmann/json.hpp>

#include "nn/gates/method.h"
#include "tests/lab/study/epsilon_study.h"
#include "tests/support/cuda.h"
#include "tests/support/interrupt.h"

using namespace plumb;
using namespace plumb::lab;
using namespace plumb::vision;
using namespace plumb::test;

namespace {

const Words small_study{"--dim", "8", "--batch", "4", "--steps", "12", "--eval-images", "20", "--no-progress", "--out"};

// Runs a study. If `logs`, each step writes a line before the result of the step is known.
int trains(int argc, const char* const* argv, const Observer& observer = {}, bool logs = false) {
  vision::Study study("device", "Trains on a device.");
  const Axis<std::string> gate = study.axis<std::string>("--gates", {"layerscale"}, "Gates");
  return study.run(argc, argv, [&](lab::Trial& trial) {
    nn::ViT model(vision::vit(trial, {.depth = 2, .method = nn::MethodChoice(trial[gate])}));
    if (!logs) return trial.train(model, observer);
    trial.train(model, {.before = [&](std::int64_t step) { trial.trace({{"begun", static_cast<double>(step)}}); }});
  });
}

// Returns the values in metrics.jsonl by step and name.
std::map<std::pair<int, std::string>, nlohmann::json> metrics(const TemporaryFolder& folder, const std::string& of) {
  std::map<std::pair<int, std::string>, nlohmann::json> all;
  std::istringstream lines(file(folder, of + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    for (const auto& [name, value] : json.items()) all[{json["step"].get<int>(), name}] = value;
  }
  return all;
}

}  // namespace

TEST_CASE("a study on the device reports the same values as on the cpu", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) { return trains(argc, argv); };
  const Words dropping{"--drop-key",  "0.2", "--drop-path",  "0.1", "--clip-norm",   "1",
                       "--ema-decay", "0.9", "--eval-every", "5",   "--save-weights"};
  for (const std::string device : {"cpu", "cuda"}) {
    const Ended e = call(folder.path(), main, with(with(small_study, {device, "--device", device}), dropping));
    INFO(e.err);
    REQUIRE(e.status == 0);
  }
  const auto cpu = metrics(folder, "cpu"), cuda = metrics(folder, "cuda");
  REQUIRE(cpu.size() == cuda.size());
  for (const auto& [key, value] : cpu) {
    INFO(key.second << " at step " << key.first << ": " << value << " and " << cuda.at(key));
    if (value.is_number_float())
      CHECK(cuda.at(key).get<double>() == Approx(value.get<double>()).epsilon(1e-4));
    else
      CHECK(cuda.at(key) == value);
  }
}

TEST_CASE("divergence on the device is reported as on the cpu with the same step and reason and trace", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) { return trains(argc, argv, {}, true); };
  for (const std::string device : {"cpu", "cuda"}) {
    const Ended e = call(folder.path(), main,
                         with(small_study, {device, "--device", device, "--lr", "1e19", "--optimizer", "sgd",
                                            "--warmup", "0", "--loss-limit", "0"}));
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK_THAT(e.err, contains("diverged at step"));
  }
  const auto cpu = metrics(folder, "cpu"), cuda = metrics(folder, "cuda");
  REQUIRE(cpu.size() == cuda.size());
  for (const auto& [key, value] : cpu) {
    REQUIRE(cuda.contains(key));
    if (key.second == "diverged_at" || key.second == "begun") CHECK(cuda.at(key) == value);
    if (key.second == "loss" && value.is_number() && value.get<double>() < 1e4)
      CHECK(cuda.at(key).get<double>() == Approx(value.get<double>()).epsilon(1e-3));
    if (key.second == "divergence") {
      const auto op = [](const nlohmann::json& reason) {
        return reason.get<std::string>().substr(0, reason.get<std::string>().find(']'));
      };
      CHECK(op(cuda.at(key)) == op(value));
    }
  }
}

TEST_CASE("divergence of a loop of one's own on the device names the op of a function only", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder folder;
  for (const bool of_function : {false, true}) {
    const auto body = [&](vision::Trial& trial) {
      nn::ViT model(vision::vit(trial, {.depth = 1, .method = "pre"}));
      nn::AdamW optimizer(model.parameters(), {.lr = 1e-2});
      std::int64_t last = -1;
      for (vision::Step& step : trial.loop(model, optimizer)) {
        const auto loss = [&] {
          const Tensor mean = cross_entropy(model(step.batch().images), step.batch().labels);
          return step.number() == 3 ? log(mean * 0 - 1) : mean;
        };
        of_function ? step.minimise(loss) : step.minimise(loss());
        last = step.number();
      }
      CHECK(trial.has_diverged());
      CHECK((last >= 3 && (!of_function || last == 3)));
      for (const nn::Parameter& p : model.parameters())
        for (const double v : p.value.values()) CHECK(std::isfinite(v));
    };
    const Ended e = call(
        folder.path(),
        [&](int argc, const char* const* argv) { return vision::Study("own", "A loop.").run(argc, argv, body); },
        with(small_study, {of_function ? "function" : "tensor", "--device", "cuda"}));
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK_THAT(e.err, contains("diverged at step 3: ") &&
                          contains(of_function ? "[log]" : "op not known: pass a function that computes the loss"));
  }
}

TEST_CASE("a trial whose loss stays above the limit ends on the device as on the cpu with the same log", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder folder;
  const auto main = [](int argc, const char* const* argv) { return trains(argc, argv, {}, true); };
  Words given(small_study.begin(), small_study.end() - 1);
  given[5] = "40";  // this word is the value of --steps
  for (const char* const word :
       {"--lr", "0.3", "--optimizer", "sgd", "--warmup", "0", "--loss-limit", "0.5", "--eval-every", "9", "--out"})
    given.push_back(word);
  for (const std::string device : {"cpu", "cuda"}) {
    const Ended e = call(folder.path(), main, with(given, {device, "--device", device}));
    INFO(e.err);
    CHECK(e.status == 0);
    CHECK_THAT(e.err, contains("diverged at step"));
  }
  const auto names = [&](const std::string& of) {  // returns the lines without their values, in order
    std::istringstream lines(file(folder, of + "/metrics.jsonl"));
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) {
      std::string text;
      const nlohmann::json json = nlohmann::json::parse(line);
      for (const auto& [name, value] : json.items())
        text += name + (value.is_number_integer() ? value.dump() : "") + " ";
      all.push_back(text);
    }
    return all;
  };
  CHECK(names("cuda") == names("cpu"));
}

TEST_CASE("an interrupted study on the device resumes from its checkpoint and gives the same bits", "[study]") {
  PLUMB_REQUIRE_CUDA();
  const TemporaryFolder folder;
  int stop_at = -1;
  const auto main = [&](int argc, const char* const* argv) {
    return trains(argc, argv, {.before = [&](std::int64_t step) {
                    if (step == stop_at) interrupted_by(SIGINT);
                  }});
  };
  Words given(small_study.begin(), small_study.end() - 1);
  for (const char* const word : {"--device", "cuda", "--ema-decay", "0.9", "--drop-key", "0.2", "--out"})
    given.push_back(word);
  REQUIRE(call(folder.path(), main, with(given, {"whole"})).status == 0);
  stop_at = 6;
  REQUIRE(call(folder.path(), main, with(given, {"a"})).status == 130);
  stop_at = -1;
  const Ended resumed = call(folder.path(), main, with(given, {"a", "--resume"}));
  INFO(resumed.err);
  REQUIRE(resumed.status == 0);
  CHECK(file(folder, "a/metrics.jsonl") == file(folder, "whole/metrics.jsonl"));
  CHECK(timeless(file(folder, "a/results.csv")) == timeless(file(folder, "whole/results.csv")));
}
