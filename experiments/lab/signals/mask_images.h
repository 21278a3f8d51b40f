// What DropKey drops, as pictures.
#pragma once

#include <cstdint>
#include <optional>

#include "core/drop_key.h"
#include "experiments/lab/data/image_ops.h"
#include "experiments/lab/train/trial.h"
#include "nn/stack.h"

namespace plumb::lab {

// The patches of the grid that row (sample 0, head 0, query) of a call on so many keys draws in its first step: dark is
// dropped. A row that loses all of them is drawn so, whatever becomes of it (EmptyRow).
Pixels mask_picture(const KeyMask& drop, KeyGrid grid, std::int64_t keys, std::int64_t query);

inline constexpr std::int64_t mask_gap = 10;  // pixels between such pictures

// What four rows of the first, the middle and the last block lose in the first step of a training under this seed, of
// `tokens` tokens; a row of pictures a block. Nothing where nothing is dropped.
std::optional<Pixels> masks_picture(const nn::Stack& stack, std::uint64_t seed, std::int64_t tokens);

// For reports: attaches that to the trial, of the first seed alone.
void attach_masks(Trial& trial, const nn::Stack& stack, std::int64_t tokens);

}  // namespace plumb::lab
