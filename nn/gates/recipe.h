// The training settings that the paper of a residual method prescribes.
#pragma once

#include <string>

#include "nn/init.h"

namespace plumb::nn {

// The training recipe around a gate: initial weights, head, learning-rate factors and warm-up. Recipe{} is the shared
// recipe: with this recipe, methods differ only in their gate.
struct Recipe {
  Base base = Base::truncated_normal;
  bool zero_head = false;   // whether the weights of the classifier have the initial value 0
  double scalar_rate = 1;   // factor of the learning rate for the parameters of Role::gate and Role::shift
  double warmup = 0;        // share of the training steps that belong to the warm-up of the learning rate
  std::string source = {};  // the paper that states the values above
};
// Returns the recipe of DeiT. This recipe is the default of methods whose papers state no recipe.
Recipe deit_recipe();
// Returns the recipe of table 1 in the CaiT paper. This table compares several methods under the same initial weights
// and warm-up.
Recipe cait_recipe();

}  // namespace plumb::nn
