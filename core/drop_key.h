// DropKey (Li et al., CVPR 2023): functions that say which keys of an attention row are dropped. Masks are computed
// from random draws and never stored.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/op_options.h"

namespace plumb {

// The cells that seeds drop: [height * width], 1 = dropped. In `seeds` [height * width], every value other than 0 is a
// seed. For the shape plain, the seeds themselves are dropped. For block, a seed drops nothing if its window does not
// fit into the grid. Throws Error if `seeds` has another size, the window is not odd, or a side is 65536 or more.
std::vector<std::uint8_t> dropped_by_seeds(DropShape shape, std::int64_t height, std::int64_t width,
                                           std::int64_t window, std::span<const std::uint8_t> seeds);

// The probability with which a cell becomes a seed, so that a key is dropped with probability `rate`:
//   plain  rate
//   block  1 - (1 - rate)^(1 / w^2), for the window w. The formula is exact at any rate for a key that w^2 seeds can
//          reach. Keys near the border lie in fewer windows and are dropped less often; nn::expected_drop_ratio gives
//          the actual ratio. DropBlock's formula is the first-order approximation with a correction for the border;
//          DropBlock's formula drops too much if windows overlap, and exceeds 1 at high rates.
//   cross  1 - (1 - rate)^(1 / (w (height + width) - w^2)). The formula is exact for w = 1. For other w, the formula is
//          exact for a key whose distance to the border is at least w / 2.
double drop_seed_rate(DropShape shape, double rate, KeyGrid grid, std::int64_t window);

// The DropKey settings of an attention call. The rate is rounded to the 16 bits of a draw: a seed
// rate below 2^-17 drops nothing.
struct KeyMask {
  std::uint32_t threshold = 0;   // round(65536 p), with p the rate of a key (plain) or of a seed; 0 means no DropKey
  std::uint64_t random_key = 0;  // random_key(seed, path)
  DropShape shape = DropShape::plain;
  DropSharing sharing = DropSharing::per_entry;
  std::int64_t window = 1;
  KeyGrid grid{};
};

// The settings for dropping a key with probability `rate` in [0, 1]. Window 0 means the default of the shape (block 3,
// cross 1). If the rate is 0, the settings drop nothing and the other arguments are not checked. Otherwise throws Error
// if the rate is out of range, or, for block and cross, if there is no grid, if the grid has more than `keys` cells, or
// if the window is even or larger than the grid.
KeyMask key_mask(double rate, DropShape shape, std::int64_t window, DropSharing sharing, KeyGrid grid,
                 std::int64_t keys, std::uint64_t random_key);

// Sets dropped[j] to 1 if DropKey drops key j of the row (sample, head, query), else to 0. The random draws are
// described in core/random.h. `sample` counts from the start of the whole batch.
void drop_keys(const KeyMask& drop, std::uint32_t step, std::int64_t sample, std::int64_t heads, std::int64_t head,
               std::int64_t query, std::span<std::uint8_t> dropped);

}  // namespace plumb
