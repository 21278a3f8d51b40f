// The published settings of the ablations, for presets named "paper" and for small networks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/vision/study.h"

namespace plumb::vision {

// Returns the names of the residual methods that a study trains. The function is called when all options are read.
using Methods = std::function<std::vector<std::string>()>;

// Sets the options of DeiT-S on ImageNet to the values with which DeiT and CaiT train it (model, recipe, augmentation
// and evaluation). Each value has its source for --print-config. Options that the study varies or does not have are
// left alone. --print-config then also shows the constants that no option sets. With --recipe paper, --print-config
// also shows the recipe of each method. The images come from the folder --image-folder.
void set_deit_small(Study& study, Methods methods);

// Sets the options of set_deit_small, but for a search for the settings at which methods train. The search uses the
// recipe of each method's paper, no augmentation, a twentieth of the epochs, and three seeds.
void set_deit_small_for_search(Study& study, Methods methods);

// Sets the source of an option's value, for values that a preset has set. The call has no effect if the study does not
// have the option.
void explain(lab::Study& study, const std::string& option, const std::string& source);

}  // namespace plumb::vision
