// Position embeddings in weight files: a square grid of patches, with or without a class token before it.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::nn {

// Returns the side of a square grid with this number of tokens. Throws Error, which begins with `what`, if the number
// is not a square.
std::int64_t side_of(std::int64_t tokens, const std::string& what);
// Whether a model with a class token (`token`) lacks a position for it, as in DeiT III and others (timm's
// no_embed_class). This follows from the number of positions.
bool lacks_token_position(std::int64_t positions, bool token);

}  // namespace plumb::nn
