// The published setting of the ablations, for presets called "paper", and what a small network takes of it.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace plumb::lab {

class Study;
using Methods = std::function<std::vector<std::string>()>;  // the residual methods that a study trains, by name, when
                                                            // all options are read

// DeiT-S on ImageNet as DeiT and CaiT train it: model, recipe, augmentation and evaluation, each option with its source
// for --print-config; those that a study varies, or does not have, stay as they are. Below them --print-config says the
// constants that no option sets, and under --recipe paper what that is for each of the methods. The images come with
// --image-folder.
void set_deit_small(Study& study, Methods methods);

// set_deit_small for a search for where methods train: each under its paper's recipe, without augmentation, for a
// twentieth of the epochs, three seeds.
void set_deit_small_for_search(Study& study, Methods methods);

// For ablations on narrow networks: where a recipe has DeiT's weights, they are what DeiT-S has, at this width. With
// its 0.02 as it is branches are so small at a width of 64 that what decides is how fast a method outgrows that
// (docs/results.md, cait_table1).
void set_deit_weights(Study& study);

// Says where the values of an option come from that a preset has set; nothing where the study has no such option.
void explain(Study& study, const std::string& option, const std::string& source);

}  // namespace plumb::lab
