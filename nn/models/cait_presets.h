// The published configurations of CaiT, with the source of each constant.
//
//   nn::CaiT model(nn::options_of(nn::cait_preset("cait-paper-xxs24"), {.classes = 100}));
#pragma once

#include "nn/models/cait.h"

namespace plumb::nn {

// A constant of a preset.
struct Constant {
  double value;
  // The source of the value: a paper, or a file of the authors or of timm. "reported in .., not verified" marks a value
  // from a secondary source. "rule: .." marks a value that is not published for this size and follows from the rule.
  std::string source;
};

// A published configuration. cait-paper-SIZE follows the rules of the paper, completed by the authors' code.
// cait-timm-SIZE describes the model that timm's cait_SIZE builds. SIZE is xxs, xs, s or m followed by 24, 36 or 48
// blocks; not all of these models were released.
struct CaitPreset {
  std::string name;
  std::vector<std::pair<std::string, Constant>>
      constants;  // the constants of the model, then those of the training recipe; a constant of value 0 is off

  // Returns the constant with this name. Throws Error for an unknown name.
  const Constant& at(const std::string& constant) const;
  Constant& at(const std::string& constant);
};

// Returns the names of all presets.
std::vector<std::string> cait_preset_names();
// Returns the preset with this name. Throws Error for an unknown name; the message contains the nearest known names.
CaitPreset cait_preset(const std::string& name);

// The options of a CaiT that a preset does not set, because these options depend on the data and the trial.
struct CaitTask {
  std::int64_t image = 224, channels = 3, classes = 1000;
  std::uint64_t seed = 0;
};
// Returns the options of a CaiT with this preset for this task.
CaiTOptions options_of(const CaitPreset& preset, const CaitTask& task = {});

// A constant that has the value `a` in one preset and the value `b` in another preset.
struct CaitDifference {
  std::string name;
  Constant a, b;
};
// Returns the constants whose values differ between two presets.
std::vector<CaitDifference> differences(const CaitPreset& a, const CaitPreset& b);

}  // namespace plumb::nn
