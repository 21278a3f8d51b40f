// DropKey's masks (Li et al., CVPR 2023) as functions: which keys of an attention row are dropped. Nothing here is
// stored.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace plumb {

// What attention does with a query that lost every key to DropKey (an empty row).
enum class EmptyRow {
  keep_all,  // the row ignores DropKey's mask, and the keep mask too if that leaves no key
  zero,      // output 0, gradient 0
  paper      // uniform over all keys, scores treated as constants
};

// What one draw drops. The structured shapes draw seeds on the patch grid; each seed drops the cells around it.
enum class DropShape {
  plain,  // the key itself
  block,  // the window x window square around a seed; seeds only where the window fits (the paper's window is 3)
  cross   // the full rows and columns within window / 2 of a seed (the paper's window is 1)
};

// Which rows share a mask.
enum class DropSharing {
  per_entry,  // none: one mask per (batch, head, query); the paper's
  heads,      // the heads of a (batch, query)
  column      // the queries of a (batch, head)
};

const char* name(EmptyRow empty);
const char* name(DropShape shape);
const char* name(DropSharing sharing);
const std::vector<std::string>& empty_row_names();     // keep_all, zero, paper
const std::vector<std::string>& drop_shape_names();    // plain, block, cross
const std::vector<std::string>& drop_sharing_names();  // per_entry, heads, column
// Throw for another name.
EmptyRow empty_row_named(const std::string& name);
DropShape drop_shape_named(const std::string& name);
DropSharing drop_sharing_named(const std::string& name);

// The patches that keys stand for: the last height * width keys, row by row. Keys before them (a class token and the
// like) are not on the grid, and the structured shapes never drop them. 0 x 0: no grid. Sides are below 65536.
struct KeyGrid {
  std::int64_t height = 0, width = 0;
  std::int64_t cells() const { return height * width; }
};

// The cells [height * width], 1 = dropped, that seeds [height * width], not 0 = seed, drop. `plain` returns the seeds.
// A block's seed counts only where its window (odd) fits into the grid: others drop nothing.
std::vector<std::uint8_t> dropped_by_seeds(DropShape shape, std::int64_t height, std::int64_t width,
                                           std::int64_t window, std::span<const std::uint8_t> seeds);

// How likely a cell becomes a seed, so that a key is dropped with probability `rate`:
//   plain  rate
//   block  1 - (1 - rate)^(1 / w^2): exact for a key in reach of w^2 centres, at any rate. DropBlock's formula is its
//   first order with a
//          correction for the border; it overshoots where windows overlap and exceeds 1 at high rates. The price: keys
//          near the border lie in fewer windows and are dropped less (nn::expected_drop_ratio says how much).
//   cross  1 - (1 - rate)^(1 / (w (height + width) - w^2)): exact for w = 1, and else for a key that is w / 2 away from
//   the border
double drop_seed_rate(DropShape shape, double rate, KeyGrid grid, std::int64_t window);

// DropKey's part of an attention call. The rate is rounded to the 16 bits of a draw: a seed rate below 2^-17 drops
// nothing.
struct KeyMask {
  std::uint32_t threshold = 0;   // round(65536 p) of an entry (plain) or a seed; 0: no DropKey
  std::uint64_t random_key = 0;  // random_key(seed, path)
  DropShape shape = DropShape::plain;
  DropSharing sharing = DropSharing::per_entry;
  std::int64_t window = 1;
  KeyGrid grid{};
};

// The call's part for a probability `rate` in [0, 1] that a key is dropped. window 0: the shape's default (block 3,
// cross 1). A structured shape wants an odd window no larger than the grid, and a grid of at most `keys` cells. A rate
// of 0 gives no DropKey, unchecked.
KeyMask key_mask(double rate, DropShape shape, std::int64_t window, DropSharing sharing, KeyGrid grid,
                 std::int64_t keys, std::uint64_t random_key);

// dropped[j] = 1 where DropKey drops key j of the row (sample, head, query), else 0; draws as in core/random.h.
// `sample` counts from the start of the whole batch.
void drop_keys(const KeyMask& drop, std::uint32_t step, std::int64_t sample, std::int64_t heads, std::int64_t head,
               std::int64_t query, std::span<std::uint8_t> dropped);

}  // namespace plumb
