// Lists the initial values that the modules of a model declare.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"

namespace plumb::nn {

// A group of parameters with the same declaration, such as blocks.0.attn.qkv.weight .. blocks.11.attn.qkv.weight.
struct InitGroup {
  std::string names;  // the names, with * for the index: "blocks.*.attn.qkv.weight"
  Shape shape;
  Role role;
  std::string init;  // the text of Init::description()
  double lr_factor, eps_factor, decay_factor;
  std::int64_t tensors;  // the number of parameters of the group
};
// Returns the groups of a module's parameters, in the order of registration.
std::vector<InitGroup> init_groups(const Module& module);

}  // namespace plumb::nn
