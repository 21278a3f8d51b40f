// Functions of attention that do not depend on the instruction set.
#pragma once

#include <algorithm>
#include <bit>

#include "core/backend.h"

namespace plumb::cpu {

// Returns 1 / (1 - p) of attention dropout, or 0 if p = 1.
inline float survivor_scale(const AttentionCall& call) {
  const std::uint32_t t = call.dropout.threshold;
  return t >= 65536 ? 0.0f : static_cast<float>(1 / (1 - t / 65536.0));
}

// Returns whether all operands have the same dtype.
template <class First, class... Others>
bool of_one_dtype(const First& first, const Others&... others) {
  return ((others.array.dtype() == first.array.dtype()) && ...);
}

// Returns the number of (sample, head) pairs per parallel block. A block has at least about 5 us of work, but few
// enough pairs that the threads get even shares.
inline std::int64_t attention_grain(const AttentionCall& call) {
  return std::max<std::int64_t>(1, 125'000 / std::max<std::int64_t>(1, call.queries * call.keys * call.head_dim));
}

// Computes the keys that the seeds of a row drop (dropped_by_seeds in core/drop_key.h). `seeds` and `dropped` hold one
// bit per key. Every bit of `dropped` is written.
inline void drop_by_seeds(const KeyMask& drop, std::int64_t keys, const std::uint8_t* seeds, std::uint8_t* dropped) {
  const std::int64_t bytes = (keys + 7) / 8, H = drop.grid.height, W = drop.grid.width, off_grid = keys - H * W,
                     reach = drop.window / 2;
  std::fill_n(dropped, bytes, std::uint8_t{0});
  const auto drop_cells = [&](std::int64_t top, std::int64_t bottom, std::int64_t left,
                              std::int64_t right) {  // both ends are included
    for (std::int64_t i = std::max<std::int64_t>(top, 0); i <= std::min(bottom, H - 1); ++i) {
      const std::int64_t row = off_grid + i * W, end = row + std::min(right, W - 1);
      for (std::int64_t key = row + std::max<std::int64_t>(left, 0); key <= end; ++key)
        dropped[key / 8] |= static_cast<std::uint8_t>(1 << key % 8);
    }
  };
  for (std::int64_t g = off_grid / 8; g < bytes; ++g)
    for (unsigned left = seeds[g]; left; left &= left - 1) {
      const std::int64_t cell = 8 * g + std::countr_zero(left) - off_grid;
      if (cell < 0 || cell >= H * W) continue;
      const std::int64_t i = cell / W, j = cell % W;
      if (drop.shape == DropShape::cross) {
        drop_cells(i - reach, i + reach, 0, W - 1);
        drop_cells(0, H - 1, j - reach, j + reach);
      } else if (reach <= i && i < H - reach && reach <= j && j < W - reach) {
        drop_cells(i - reach, i + reach, j - reach, j + reach);
      }
    }
}

}  // namespace plumb::cpu
