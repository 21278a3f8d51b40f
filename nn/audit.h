// Whether a fresh model is what its modules declare, and what they declare.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Compares every parameter with what its declared Init gives for (seed, name), bit for bit: nothing was initialised
// twice, forgotten, or changed after the one pass of initialize(). Throws one Error that lists every tensor that
// differs, what it declares and what was found. Call before calibrate(), which sets data-dependent values.
void audit_init(const Module& module, std::uint64_t seed);

// Parameters that are declared alike: blocks.0.attn.qkv.weight .. blocks.11.attn.qkv.weight are one row.
struct InitGroup {
  std::string names;  // "blocks.*.attn.qkv.weight"
  Shape shape;
  Role role;
  std::string init;  // Init::description()
  double lr_factor, eps_factor, decay_factor;
  std::int64_t tensors;
};
std::vector<InitGroup> init_groups(const Module& module);  // in order of registration

}  // namespace plumb::nn
