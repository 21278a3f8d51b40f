// --dry-run: what a call would do, whether it could, and what it would cost.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/common/run_options.h"
#include "nn/module.h"

namespace plumb::lab {

class Cli;
struct ImageSet;

// A run before it is made.
struct PlannedRun {
  std::string label;      // "layerscale depth 48 seed 0"
  std::string kind = {};  // of network: the residual method
  std::int64_t depth = 0;
};

// The network of a run, images [B, C, H, W] -> logits, at another depth than its own, for images like these.
using MakeNetwork = std::function<std::unique_ptr<nn::Layer>(const PlannedRun& run, std::int64_t depth, const ImageSet& images)>;

// Refuses what the runs would refuse before they begin (data, batch, output folder; errors: Setup, RunFolder), then writes to stdout: a line a run,
// how many runs, steps and images there are, and, where `make` is given and there are steps to take, the number of parameters and an estimate of the
// training time. Both are taken as linear in depth: the parameters of each kind from networks of depths 1 and 2, exact but for a kind whose first two
// blocks are unlike the rest, and the time from a few measured steps of the first run's kind with the whole batch, at depths 1 and 8 (2 where a step
// takes long). Makes and changes no file.
void dry_run(const Cli& cli, const RunOptions& options, const std::vector<PlannedRun>& runs, const MakeNetwork& make = {});

}  // namespace plumb::lab
