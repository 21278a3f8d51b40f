// The residual methods by name, for use with other constants than their papers': {.gate = methods::layerscale(0.3)},
// which is the same as {.gate = "layerscale:init=0.3"}.
// Each is defined, with formula, source and pitfalls, in nn/gates/<name>.cpp. N = number of blocks.
#pragma once

#include "nn/gates/gate.h"

namespace plumb::nn::methods {

Method post();
Method pre();
Method rezero();           // one scalar a block
Method rezero_separate();  // one a branch
Method rezero_ln();        // one a branch, pre-norm
Method skipinit();
// What is kept of Fixup, for ablations: its rules (nn/gates/fixup.cpp) one by one. The zero classifier and the rate of
// the scalars are its recipe's.
struct FixupParts {
  bool zero_last = true;  // rule 1: last layers of branches start at 0, else as other weights do
  double factor = 1;      // rule 2: exponent of its factor; 0: none, 2: its square
  bool shifts = true;     // rule 3: scalars before linears and activations
  bool scales = true;     // rule 3: scalars at the ends of branches
  bool operator==(const FixupParts&) const = default;
};
Method fixup(const FixupParts& parts = {});
Method fixup_ln();  // pre-norm
Method t_fixup();
Method t_fixup_ln();                                  // pre-norm
Method scalar_gate(std::optional<double> init = {});  // eps by depth
Method layerscale(std::optional<double> init = {});   // eps by depth
Method deepnorm(std::optional<double> alpha = {});    // (2N)^1/4
Method admin();                                       // closed form
Method admin_profile();                               // a pass over the first batch
Method residual_dual();                               // ResiDual
Method b2t();
Method sub_ln();
Method normformer();
Method sandwich();
Method peri_ln();
Method layernorm_scaling();
Method mix_ln(double post_share = 0.25);  // the first ceil(share N) blocks are post-norm
Method gpt2_init();
Method branch_scale(std::optional<double> multiplier = {});  // N^-1/2
Method depth_mup(double base_depth = 2);                     // exponent 1/2
Method complete_p(double base_depth = 2);                    // exponent 1
Method dyt();
Method value_residual();
Method hyper_connections(std::int64_t streams = 4);
Method act_norm();

}  // namespace plumb::nn::methods
