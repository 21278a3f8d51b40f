// Experiments with a custom training loop, whose only axis is the seed. The library adds command line, study folder,
// data, progress, log and statistics.
//
//   int main(int argc, char** argv) {
//     return lab::experiment(argc, argv, {.name = "warmup_study", .summary = "..."}, [](lab::Run& run) {
//       nn::ViT model(run.vit({.depth = 48, .gate = "layerscale"}));
//       nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, run.warmup(), run.steps())});
//       run.track(model, optimizer);  // optional, for checkpoints, --eval-every and --save-weights
//       for (const lab::Batch& batch : run.batches()) {
//         const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
//         optimizer.step(g);
//         run.log({{"loss", g.loss()}, {"grad_norm", g.norm()}});
//       }
//     });
//   }
//
// An experiment with further axes is a Study (study.h). The body of a study can have the same loop.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/problem/evaluate.h"
#include "experiments/lab/train/train.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// The declaration of an experiment.
struct ExperimentInfo {
  std::string name, summary;
  StudyOptions defaults = {};
  std::function<void(Cli&)> declare = {};  // adds options; the variables of the options must outlive the experiment
  // Called when all options are set. The function may derive values that the user did not give (Cli::given) from other
  // values. Cli::by_rule marks derived values in --help.
  std::function<void(Cli&, StudyOptions&)> derive = {};
  // The measured values in the table at the end and on the progress line of a finished seed, in this order. If `show`
  // is empty, the first eight values and the number of the other values are shown.
  std::vector<std::string> show = {};
  std::function<void(const DataFacts&)> check = {};  // throws UsageError if the options do not suit the data
  // Whether the options of the ViT that Run::vit builds are added: --dim, --heads, --patch, --pool, ...
  bool network = false;
};

// Runs the body once for each seed. Returns the exit status, as Study::run does.
int experiment(int argc, const char* const* argv, const ExperimentInfo& info, std::function<void(Run&)> body);

}  // namespace plumb::lab
