// A small study, and functions that read study folders in tests.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "experiments/vision/study.h"
#include "nn/gates/methods.h"
#include "tests/support/called.h"
#include "tests/support/catch.h"
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
      nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = nn::methods::layerscale(trial[epsilon])}));
      if (more) more(trial);
      trial.train(model);
    });
  }
};

}  // namespace plumb::test
