// Functions that make the residual methods of the table. The arguments set the constants of a method:
// {.method = methods::layerscale(0.3)} is the same as {.method = "layerscale:init=0.3"}. The files nn/gates/*.cpp
// define these functions, with formula, source and pitfalls of each method. N is the number of blocks.
#pragma once

#include "nn/gates/method.h"

namespace plumb::nn::methods {

// Each function returns the method with its name.
Method post();
Method pre();
Method rezero();           // one scalar for each block
Method rezero_separate();  // one scalar for each branch
Method rezero_ln();        // one scalar for each branch, with pre-norm
Method skipinit();         // one scalar for each branch; initial value 0 for the scalars and the head
Method fixup();            // no norms; scaled initial weights, scalar shifts and scales
Method fixup_ln();         // Fixup with pre-norm
Method t_fixup();          // T-Fixup: no norms; scaled initial weights
Method t_fixup_ln();       // T-Fixup with pre-norm
Method scalar_gate(std::optional<double> init = {});  // init: by default layerscale_init(N)
Method layerscale(std::optional<double> init = {});   // init: by default layerscale_init(N)
Method deepnorm(std::optional<double> alpha = {});    // alpha: by default (branches)^(1/4)
Method admin();                                       // omega in closed form
Method admin_profile();                               // omega from a pass over the first batch
Method residual_dual();                               // ResiDual: two streams, one with post-norm, one without norm
Method b2t();                                         // post-norm with a connection around the first norm
Method sub_ln();                                      // a second norm inside each branch
Method normformer();                                  // norms inside and after branches, one scale per head
Method sandwich();                                    // norms before and after each branch
Method peri_ln();                                     // the same as sandwich, but without scaled initial weights
Method layernorm_scaling();                           // the output of the norms of block l is divided by sqrt(l)
Method mix_ln(double post_share = 0.25);              // the first ceil(post_share N) blocks are post-norm
Method gpt2_init();                                   // initial weights of each branch's last layer times (2N)^(-1/2)
Method branch_scale(std::optional<double> multiplier = {});  // multiplier: by default N^(-1/2)
Method depth_mup(double base_depth = 2);                     // branch factor (N / base_depth)^(-1/2)
Method complete_p(double base_depth = 2);                    // branch factor (N / base_depth)^(-1)
Method dyt();                                                // w tanh(a x) + b in place of every norm
Method value_residual();                             // the values (v) are mixed with the values of the first block
Method hyper_connections(std::int64_t streams = 4);  // several streams, mixed at each junction
Method act_norm();                                   // scale and shift per channel, set from the first batch

}  // namespace plumb::nn::methods
