// Checks that a fresh model has the initial values that its modules declare, and lists these declarations.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Compares every parameter, bit for bit, with the values that its declared Init gives for (seed, name). A difference
// means that a parameter was initialised twice, was forgotten, or was changed after initialize(). Throws one Error that
// lists every tensor that differs, with its declaration and its value. Call audit_init() before calibrate(), because
// calibrate() sets values that depend on data.
void audit_init(const Module& module, std::uint64_t seed);

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
