// Positions of tokens in files of weights: a square grid of patches, with or without a class token before it.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::nn {

// The side of a square grid of so many tokens; throws if they form none, `what` first in the error.
std::int64_t side_of(std::int64_t tokens, const std::string& what);
// Whether a model with a class token (`token`) has no position for it: DeiT III and others (timm's no_embed_class).
bool lacks_token_position(std::int64_t positions, bool token);

}  // namespace plumb::nn
