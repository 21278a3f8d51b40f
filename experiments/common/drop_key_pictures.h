// What DropKey drops, as pictures.
#pragma once

#include <cstdint>

#include "core/drop_key.h"
#include "experiments/common/arm.h"
#include "experiments/common/data/image_ops.h"
#include "experiments/common/section.h"
#include "nn/stack.h"

namespace plumb::lab {

// The patches of the grid that row (sample 0, head 0, query) of a call on so many keys and heads loses in its first step: dark is dropped.
Pixels mask_picture(const KeyDrop& drop, KeyGrid grid, std::int64_t keys, std::int64_t heads, std::int64_t query);

inline constexpr std::int64_t mask_gap = 10;  // pixels between such pictures

// For reports. Draws what rows of the first, the middle and the last block lose in the first step of the training, of `tokens` tokens, and attaches
// it to the arm: of the first seed alone, and nothing where nothing is dropped.
void attach_masks(Arm& arm, const nn::Stack& stack, std::int64_t tokens);
// What arms attached, as a section of its own; without pictures where none did.
Section masks_section(const StudyResults& results);

}  // namespace plumb::lab
