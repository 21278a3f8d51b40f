// The published configurations of CaiT, with the source of each constant, for programs that show them. cait_options()
// in cait.h makes the options of a model.
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

// A published configuration, with a name as in cait_options(). Not all of these models were released.
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

// A constant that has the value `a` in one preset and the value `b` in another preset.
struct CaitDifference {
  std::string name;
  Constant a, b;
};
// Returns the constants whose values differ between two presets.
std::vector<CaitDifference> differences(const CaitPreset& a, const CaitPreset& b);

}  // namespace plumb::nn
