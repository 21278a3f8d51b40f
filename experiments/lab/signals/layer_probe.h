// Records layer statistics while a trial trains.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/signals/probe.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// Returns an observer that attaches the statistics of the layers of a model to the trial at the first step, at the last
// step and every `every` steps. If `every` is 0, the interval is a tenth of the training. The layers are those of the
// last nn::Stack at or below the model. The trial and the model must outlive the observer. Throws Error for a model
// without a stack.
Observer record_layers(Trial& trial, nn::Module& model, std::int64_t every = 0);
// Attaches the statistics of one step to the trial.
void attach_layers(Trial& trial, std::int64_t step, const LayerStats& layers);

// The layer statistics of one step.
struct StepStats {
  std::int64_t step;
  LayerStats layers;
};
// The attachments of a trial, parsed: the layer statistics in the order of their steps, and the pictures as pairs of a
// name and a PNG file in base64.
struct Attached {
  std::vector<StepStats> layers = {};
  std::vector<std::pair<std::string, std::string>> pictures = {};
};
// Parses the attachments of a record. Attachments of other kinds are left out. Throws Error if layer statistics are not
// complete.
Attached attached_to(const Record& record);

}  // namespace plumb::lab
