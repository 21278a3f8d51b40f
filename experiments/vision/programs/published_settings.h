// The published settings of the ablations, for presets named "paper" and for small networks.
#pragma once

#include <functional>
#include <string>

#include "experiments/vision/study.h"

namespace plumb::vision {

// Adds a preset with the settings of DeiT-S on ImageNet with which DeiT and CaiT train it: model, recipe, augmentation
// and evaluation, each value with its source, and then the rows `more`. The images come from the folder --image-folder.
// --print-config then also shows the constants that no option sets and, with --recipe paper, the recipe of each method.
// The methods are those of --gates or --gate, or `method` without such an option. `also` is called after the values are
// set.
void add_paper_preset(Study& study, const std::string& help, const lab::Settings& more, const std::string& method = "",
                      const std::string& name = "paper", const std::function<void()>& also = {});
// The same for a search for the settings at which methods train: with the recipe of each method's paper, no
// augmentation, a twentieth of the epochs, and three seeds.
void add_search_preset(Study& study, const lab::Settings& more);

}  // namespace plumb::vision
