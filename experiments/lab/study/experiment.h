// An experiment over seeds alone, with a loop of its own: command line, run folder, data, progress, log and statistics
// around a few lines.
//
//   int main(int argc, char** argv) {
//     return lab::experiment(argc, argv, {.name = "warmup_study", .summary = "..."}, [](lab::Run& run) {
//       nn::ViT model(run.vit({.depth = 48, .gate = "layerscale"}));
//       nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(1e-3, run.warmup(), run.steps())});
//       run.track(model, optimizer);  // for checkpoints, --eval-every and --save-weights; may be left out
//       for (const lab::Batch& batch : run.batches()) {
//         const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
//         optimizer.step(g);
//         run.log({{"loss", g.loss()}, {"grad_norm", g.norm()}});
//       }
//     });
//   }
//
// With axes of its own it is a Study (study.h), in whose body the same loop may stand.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/train/evaluate.h"
#include "experiments/lab/train/train.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

struct ExperimentInfo {
  std::string name, summary;
  StudyOptions defaults = {};
  std::function<void(Cli&)> declare = {};  // adds options of its own, whose variables outlive the experiment
  // Runs when all values are set: derives some from others, where the caller gave none (Cli::given); Cli::by_rule names
  // them in --help.
  std::function<void(Cli&, StudyOptions&)> derive = {};
  // The values that the table at the end and the line of a finished seed show, in this order. If empty, the first eight
  // that were logged, and how many there are beside them.
  std::vector<std::string> show = {};
  std::function<void(const ImageSet&)> check = {};  // throws UsageError where options do not suit the images
  bool network = false;  // whether the command line has the options of the ViT that Run::vit makes: --dim, --heads,
                         // --patch, --pool, ...
};

// Runs body once a seed, and returns the exit status, as Study::run does.
int experiment(int argc, const char* const* argv, const ExperimentInfo& info, std::function<void(Run&)> body);

}  // namespace plumb::lab
