// The published settings of the ablations, for presets named "paper" and for small networks.
#pragma once

#include <functional>
#include <string>

#include "experiments/vision/study.h"

namespace plumb::vision {

// The settings of DeiT-S on ImageNet with which DeiT and CaiT train it: model, recipe, augmentation and evaluation.
// Each value has its source. The images come from the folder --image-folder.
lab::Settings deit_small();
// The same for a search for the settings at which methods train: with the recipe of each method's paper, no
// augmentation, a twentieth of the epochs, and three seeds.
lab::Settings deit_small_for_search();
// Adds a preset with such settings. --print-config then also shows the constants that no option sets and, with --recipe
// paper, the recipe of each method. The methods are those of --gates or --gate, or `method` without such an option.
// `also` is called after the values are set.
void add_paper_preset(Study& study, const std::string& name, const std::string& help, const lab::Settings& settings,
                      const std::string& method = "", const std::function<void()>& also = {});

}  // namespace plumb::vision
