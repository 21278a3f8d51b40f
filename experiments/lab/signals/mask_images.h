// Pictures of the keys that DropKey drops.
#pragma once

#include <cstdint>
#include <optional>

#include "core/drop_key.h"
#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/train/trial.h"
#include "nn/stack.h"

namespace plumb::lab {

// Draws the grid of patches for one query (sample 0, head 0) in the first step: dropped patches are dark. `keys` is the
// number of keys. If all keys of the query are drawn to be dropped, all are dark, whatever EmptyRow then does with
// them.
Pixels mask_picture(const KeyMask& drop, KeyGrid grid, std::int64_t keys, std::int64_t query);

inline constexpr std::int64_t mask_gap = 10;  // pixels between two mask pictures

// Draws the masks of four queries in the first, the middle and the last block, in the first training step with this
// seed and `tokens` tokens. Each block is a row of pictures. Returns nothing if nothing is dropped.
std::optional<Pixels> masks_picture(const nn::Stack& stack, std::uint64_t seed, std::int64_t tokens);

// For reports: attaches masks_picture() to the trial if it has the first seed.
void attach_masks(Trial& trial, const nn::Stack& stack, std::int64_t tokens);

}  // namespace plumb::lab
