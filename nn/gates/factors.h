// Factors of residual methods as functions of the depth: the number of branches L, or the number of blocks N. Each
// function is defined in the source file of its method. The papers of encoders have two branches in a block, L = 2N.
#pragma once

#include <cstdint>

namespace plumb::nn {

double deepnorm_alpha(std::int64_t branches);        // L^(1/4), multiplies the skip
double deepnorm_beta(std::int64_t branches);         // (4L)^(-1/4), multiplies W_v, W_o, fc1, fc2
double t_fixup_factor(std::int64_t branches);        // 0.67 (L/2)^(-1/4), multiplies W_v, W_o, fc1, fc2 of an encoder
double t_fixup_decoder_factor(std::int64_t blocks);  // (9N)^(-1/4), multiplies W_v, W_o, fc1, fc2 of a decoder
// L^(-1/(2m-2)), multiplies the weights of a branch of m weight layers, except the last layer.
double fixup_factor(std::int64_t branches, int weight_layers);
double sub_ln_factor(std::int64_t branches);    // sqrt(ln L), multiplies W_v, W_o, fc1, fc2
double gpt2_factor(std::int64_t branches);      // L^(-1/2), multiplies W_o, fc2
double admin_omega(std::int64_t branches);      // sqrt((L + 1) / ln(L + 1) - 1), multiplies the skip
double branch_multiplier(std::int64_t blocks);  // N^(-1/2), multiplies the branch

}  // namespace plumb::nn
