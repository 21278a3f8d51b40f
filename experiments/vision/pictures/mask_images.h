// Pictures of the keys that DropKey drops.
#pragma once

#include <cstdint>
#include <optional>

#include "core/drop_key.h"
#include "experiments/lab/train/trial.h"
#include "experiments/vision/data/image_ops.h"
#include "nn/blocks/stack.h"

namespace plumb::vision {

// Draws the grid of patches for one query of sample 0 and head 0 in the first step. Dropped patches are dark. `keys` is
// the number of keys. If the mask drops all keys of the query, all patches are dark, whatever value EmptyRow has.
Pixels mask_picture(const KeyMask& drop, KeyGrid grid, std::int64_t keys, std::int64_t query);

inline constexpr std::int64_t mask_gap = 10;  // pixels between two mask pictures

// Draws the masks of four queries in the first, the middle and the last block, for the first training step with this
// seed and `tokens` tokens. Each block is a row of pictures. Returns no value if no key can be dropped.
std::optional<Pixels> masks_picture(const nn::Stack& stack, std::uint64_t seed, std::int64_t tokens);

// For reports: if the trial has the first seed, attaches masks_picture() to the trial.
void attach_masks(lab::Trial& trial, const nn::Stack& stack, std::int64_t tokens);

}  // namespace plumb::vision
