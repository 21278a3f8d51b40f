// Position embeddings in weight files: a square grid of patches, with or without a class token before it.
#pragma once

#include <cstdint>
#include <string>

namespace plumb::nn {

// Returns the side of a square grid with this number of tokens. Throws Error if the number is not a square. The message
// begins with `what`.
std::int64_t side_of(std::int64_t tokens, const std::string& what);
// Returns whether a model has a class token (`token`) without a position, as in DeiT III and others (timm's
// no_embed_class). The number of positions decides the answer.
bool lacks_token_position(std::int64_t positions, bool token);

}  // namespace plumb::nn
