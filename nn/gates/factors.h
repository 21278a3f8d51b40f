// Factors of residual methods by number of blocks N, each defined in its method's file.
#pragma once

#include <cstdint>

namespace plumb::nn {

double deepnorm_alpha(std::int64_t blocks);          // (2N)^1/4, of the skip
double deepnorm_beta(std::int64_t blocks);           // (8N)^-1/4, of W_v, W_o, fc1, fc2
double t_fixup_factor(std::int64_t blocks);          // 0.67 N^-1/4, of the same (encoder)
double t_fixup_decoder_factor(std::int64_t blocks);  // (9N)^-1/4, the same of a decoder
double fixup_factor(std::int64_t blocks,
                    int weight_layers);         // (2N)^(-1/(2m-2)), of the weights of a branch of m layers but its last
double sub_ln_factor(std::int64_t blocks);      // sqrt(ln 2N), of W_v, W_o, fc1, fc2
double gpt2_factor(std::int64_t blocks);        // (2N)^-1/2, of W_o, fc2
double admin_omega(std::int64_t blocks);        // sqrt((R + 1) / ln(R + 1) - 1), R = 2N branches
double branch_multiplier(std::int64_t blocks);  // N^-1/2

}  // namespace plumb::nn
