// An experiment with a loop of its own: command line, run folder, data, progress, log and statistics over seeds around a few lines.
//
//   int main(int argc, char** argv) {
//     return lab::experiment(argc, argv, {.name = "warmup_study", .summary = "..."}, [](lab::Run& run) {
//       nn::ViT model({.classes = run.data().train.classes, .depth = 48, .gate = "layerscale", .seed = run.seed()});
//       nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, 50, run.steps())});
//       for (const lab::Batch& batch : run.batches()) {
//         const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
//         optimizer.step(g);
//         run.log({{"loss", g.loss()}, {"grad_norm", g.norm()}});
//       }
//     });
//   }
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/common/cli.h"
#include "experiments/common/data/image_set.h"
#include "experiments/common/data/split.h"
#include "experiments/common/run_options.h"
#include "experiments/common/trainer.h"
#include "experiments/common/training_step.h"

namespace plumb::lab {

class Batches;

// One seed of an experiment while its body runs.
class Run {
 public:
  using Values = std::vector<std::pair<std::string, double>>;

  const RunOptions& options() const;
  std::uint64_t seed() const;
  std::int64_t steps() const { return options().steps; }
  const ImageData& data() const;
  const Normalization& normalization() const;

  // The --steps training batches of this seed. Each is a step of its own for all random draws. An interrupt ends the loop, and the run,
  // by an exception that the experiment catches.
  Batches batches(const Augmentation& augment = {});

  // Adds one object to metrics.jsonl: seed, step and these values; "loss" and "lr" also show in the progress. The last value logged under
  // a name is the seed's result for it.
  void log(const Values& values);

  // Marks this seed as diverged at that step (DivergenceWatch, trainer.h), counted from 0: a result of its own, "diverged_at", after which the
  // body returns. The values that it logged are kept in the files and left out of the statistics over seeds.
  void diverged(std::int64_t step, const std::string& reason);

  // A line on stderr, above the progress.
  void note(const std::string& text);

  // Where the run's files are.
  const std::filesystem::path& folder() const;

  struct State;  // internal
  explicit Run(State& state) : state_(state) {}

 private:
  State& state_;
};

// What `for (const Batch& b : run.batches())` walks over.
class Batches {
 public:
  class Iterator {
   public:
    const Batch& operator*() const { return owner_->batch_; }
    Iterator& operator++() {
      owner_->advance();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return owner_->scope_.has_value(); }

   private:
    friend Batches;
    explicit Iterator(Batches* owner) : owner_(owner) {}
    Batches* owner_;
  };

  Batches(Run::State& state, const Augmentation& augment);
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }

 private:
  void advance();

  Run::State& state_;
  BatchLoader loader_;
  Batch batch_;
  std::int64_t step_ = -1;
  std::optional<TrainingStep> scope_;
};

struct ExperimentInfo {
  std::string name, summary;
  RunOptions defaults = {};
  std::function<void(Cli&)> declare = {};  // adds options of its own, whose variables outlive the experiment
  // Runs when all values are set: derives some from others, where the caller gave none (Cli::given); Cli::by_rule names them in --help.
  std::function<void(Cli&, RunOptions&)> derive = {};
  // The values that the table at the end and the line of a finished seed show, in this order. If empty, the first eight that were logged, and how
  // many there are beside them.
  std::vector<std::string> show = {};
};

// Runs body once a seed and returns the exit status, as depth_stability does. Writes run.json, metrics.jsonl and results.csv (one row a
// finished seed: the last value under each name) and prints mean and 95 % t interval over the seeds that did not diverge, and which did.
// --resume repeats no finished seed.
int experiment(int argc, const char* const* argv, const ExperimentInfo& info, const std::function<void(Run&)>& body);

}  // namespace plumb::lab
