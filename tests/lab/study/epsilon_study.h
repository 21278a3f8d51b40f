// Small studies, and functions that read study folders in tests.
#pragma once

#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/vision/study.h"
#include "nn/gates/methods.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"
#include "tests/support/text.h"

namespace plumb::test {

inline const Words tiny{"--dim", "8", "--batch", "4", "--steps", "4", "--no-progress", "--out", "a"};

inline std::string file(const TemporaryFolder& folder, const std::string& name) { return read_file(folder / name); }

// The only checkpoint in a study folder. Empty if there is no checkpoint.
inline std::filesystem::path checkpoint_in(const std::filesystem::path& run) {
  std::vector<std::filesystem::path> found;
  if (std::filesystem::exists(run / "checkpoints"))
    for (const auto& entry : std::filesystem::directory_iterator(run / "checkpoints")) found.push_back(entry.path());
  CHECK(found.size() <= 1);
  return found.empty() ? std::filesystem::path() : found.front();
}

// A CSV text without the columns of times.
inline std::string timeless(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line, text;
  std::vector<bool> keep;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::string cell;
    for (std::size_t c = 0; std::getline(cells, cell, ','); ++c) {
      if (keep.size() <= c) keep.push_back(cell != "seconds" && cell != "images_per_second");
      if (keep[c]) text += cell + ",";
    }
    text += '\n';
  }
  return text;
}

// The example of study.h, with a count of the calls of its body.
struct EpsilonStudy {
  std::atomic<int> bodies = 0;
  std::function<void(lab::Trial&)> more = {};  // called by the body before the training

  int operator()(int argc, const char* const* argv) {
    vision::Study study("layerscale_init", "Does the initial value of LayerScale matter?");
    const auto depth = study.axis<int>("--depths", {1, 2}, "Numbers of blocks").at_least(1).slowest();
    const auto epsilon = study.axis<double>("--epsilons", {0, 0.1}, "Initial value").at_least(0);
    study.claim("eps > 0 trains better than 0", "CaiT, table 1",
                lab::lower("train_loss", {{"epsilon", 0.1}}, {{"epsilon", 0}}).at({{"depth", 2}}));
    return study.run(argc, argv, [&](lab::Trial& trial) {
      ++bodies;
      nn::ViT model(vision::vit(trial, {.depth = trial[depth], .method = nn::methods::layerscale(trial[epsilon])}));
      if (more) more(trial);
      trial.train(model);
    });
  }
};

// The distance of a rate from the best one, in octaves.
inline std::function<double(double)> valley(double best) {
  return [best](double rate) { return std::abs(std::log2(rate / best)); };
}

// A study of two kinds without networks, with one valley of the loss for each kind: the best rate is 0.012 for a and
// 0.001 for b, and b is better. With `axis`, the study has the axis --lrs, otherwise its rates come from --lr.
struct ValleyStudy {
  bool axis = false, reads = true;  // `reads`: whether the body reads its rate
  std::optional<lab::RateCriterion> by = {};
  std::optional<std::int64_t> warmup = 0;
  std::function<void(vision::Study&)> declare = {};  // declares more of the study
  // Replaces the losses. The trial diverges if the loss is infinite, and measures none if it is NaN.
  std::function<double(const lab::Point&, double rate)> loss = {};
  std::function<void(lab::Trial&)> more = {};  // called first by the body
  std::atomic<int> bodies = 0;

  static double usual_loss(const lab::Point& point, double rate) {
    return point.contains({{"kind", "a"}}) ? 1 + 0.1 * valley(0.012)(rate) : 0.5 + 0.1 * valley(0.001)(rate);
  }
  int operator()(int argc, const char* const* argv) {
    vision::Study study("valley", "Which kind?", {.network = false});
    study.axis<std::string>("--kinds", {"a", "b"}, "Kinds");
    if (axis) study.axis<double>("--lrs", {0.001, 0.003, 0.01}, "Rates").above(0);
    if (declare) declare(study);
    study.optimization().lr = 0.003;
    study.options().steps = 9, study.options().warmup = warmup;
    if (by) study.choose_rates_by(by->value, by->better);
    study.judging().control = "a";
    study.claim("b is lower", "a test", lab::lower("train_loss", {{"kind", "b"}}, {{"kind", "a"}}));
    if (axis)
      study.claim("b is lower at 0.003", "a test",
                  lab::lower("train_loss", {{"kind", "b"}}, {{"kind", "a"}}).at({{"lr", 0.003}}));
    return study.run(argc, argv, [&](lab::Trial& trial) {
      ++bodies;
      if (more) more(trial);
      const double rate = reads && trial.point().find("lr") ? trial.point().get<double>("lr") : 0.003;
      const double at = (loss ? loss : usual_loss)(trial.point(), rate);
      if (std::isinf(at)) return trial.mark_diverged(0, "too fast");
      const double noise = 0.01 * static_cast<double>(trial.seed() * trial.seed() % 3);
      if (!std::isnan(at)) trial.measure({{"train_loss", at + noise}});
      trial.measure({{"steps_taken", static_cast<double>(trial.steps())}, {"score", 1 - 0.1 * valley(0.024)(rate)}});
    });
  }
};

// Three seeds judge, too few for a verdict; five seeds that agree are enough.
inline const Words three_judge{"--no-progress", "--seeds", "0..3", "--out"},
    five_judge{"--no-progress", "--seeds", "0..5", "--out"};

inline Ended run_in(const TemporaryFolder& folder, ValleyStudy& study, const Words& words) {
  return call(
      folder.path(), [&](int argc, const char* const* argv) { return study(argc, argv); }, words);
}
// The same, for a call that must end with status 0.
inline Ended trained_in(const TemporaryFolder& folder, ValleyStudy& study, const Words& words) {
  const Ended e = run_in(folder, study, words);
  INFO(e.err << e.out);
  REQUIRE(e.status == 0);
  return e;
}

}  // namespace plumb::test
