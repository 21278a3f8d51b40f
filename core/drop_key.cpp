#include "core/drop_key.h"

#include <algorithm>
#include <cmath>

#include "core/random.h"

namespace plumb {
namespace {

// Throws Error for a grid whose sides do not fit into 16 bits, which the draws require.
void check_grid(std::int64_t height, std::int64_t width) {
  check(height < 65536 && width < 65536, "[drop_key] expected sides of the grid below 65536, got {} x {}", height,
        width);
}

}  // namespace

std::vector<std::uint8_t> dropped_by_seeds(DropShape shape, std::int64_t height, std::int64_t width,
                                           std::int64_t window, std::span<const std::uint8_t> seeds) {
  check_grid(height, width);
  check(height > 0 && width > 0 && static_cast<std::int64_t>(seeds.size()) == height * width,
        "[drop_key] expected {} x {} seeds, got {}", height, width, seeds.size());
  check(window > 0 && window % 2 == 1, "[drop_key] expected an odd window, got {}", window);
  const std::int64_t reach = window / 2;
  std::vector<std::uint8_t> dropped(seeds.size(), 0);
  const auto drop = [&](std::int64_t top, std::int64_t bottom, std::int64_t left,
                        std::int64_t right) {  // the range includes both ends
    for (std::int64_t i = std::max<std::int64_t>(top, 0); i <= std::min(bottom, height - 1); ++i)
      for (std::int64_t j = std::max<std::int64_t>(left, 0); j <= std::min(right, width - 1); ++j)
        dropped[static_cast<std::size_t>(i * width + j)] = 1;
  };
  for (std::int64_t i = 0; i < height; ++i)
    for (std::int64_t j = 0; j < width; ++j) {
      if (!seeds[static_cast<std::size_t>(i * width + j)]) continue;
      const bool fits = reach <= i && i < height - reach && reach <= j && j < width - reach;
      if (shape == DropShape::plain) drop(i, i, j, j);
      if (shape == DropShape::block && fits) drop(i - reach, i + reach, j - reach, j + reach);
      if (shape == DropShape::cross) {
        drop(i - reach, i + reach, 0, width - 1);
        drop(0, height - 1, j - reach, j + reach);
      }
    }
  return dropped;
}

double drop_seed_rate(DropShape shape, double rate, KeyGrid grid, std::int64_t window) {
  if (shape == DropShape::plain) return rate;
  const auto w = static_cast<double>(window), sides = static_cast<double>(grid.height + grid.width);
  const double centres =
      shape == DropShape::block ? w * w : w * sides - w * w;  // the number of seeds that can reach an interior key
  return -std::expm1(std::log1p(-rate) / centres);
}

KeyMask key_mask(double rate, DropShape shape, std::int64_t window, DropSharing sharing, KeyGrid grid,
                 std::int64_t keys, std::uint64_t random_key) {
  check(0 <= rate && rate <= 1, "[drop_key] expected a probability in [0, 1], got {}", rate);
  if (rate == 0) return {};
  if (shape == DropShape::plain)
    return {.threshold = drop_threshold(rate), .random_key = random_key, .sharing = sharing};
  if (window == 0) window = shape == DropShape::block ? 3 : 1;
  check(grid.height > 0 && grid.width > 0,
        "[drop_key] expected the grid of patches that the shape {} drops on, got {} x {}: set height and width",
        enum_name(shape), grid.height, grid.width);
  check_grid(grid.height, grid.width);
  check(grid.cells() <= keys, "[drop_key] expected a grid of at most {} keys, got {} x {} patches", keys, grid.height,
        grid.width);
  check(window > 0 && window % 2 == 1 && window <= std::min(grid.height, grid.width),
        "[drop_key] expected an odd window that fits into the grid of {} x {} patches, got {}", grid.height, grid.width,
        window);
  return {.threshold = drop_threshold(drop_seed_rate(shape, rate, grid, window)),
          .random_key = random_key,
          .shape = shape,
          .sharing = sharing,
          .window = window,
          .grid = grid};
}

void drop_keys(const KeyMask& drop, std::uint32_t step, std::int64_t sample, std::int64_t heads, std::int64_t head,
               std::int64_t query, std::span<std::uint8_t> dropped) {
  if (drop.sharing == DropSharing::heads) head = 0;
  if (drop.sharing == DropSharing::column) query = 0;
  for (std::size_t first = 0; first < dropped.size(); first += 8) {
    const Draw d =
        attention_draw(drop.random_key, step, Purpose::drop_key, static_cast<std::uint32_t>(sample * heads + head),
                       static_cast<std::uint32_t>(query), static_cast<std::uint32_t>(first / 8));
    for (std::size_t j = first; j < std::min(first + 8, dropped.size()); ++j)
      dropped[j] = draw16(d, static_cast<int>(j % 8)) < drop.threshold;
  }
  if (drop.shape == DropShape::plain) return;
  const std::size_t off_grid = dropped.size() - static_cast<std::size_t>(drop.grid.cells());
  std::ranges::fill(dropped.first(off_grid), std::uint8_t{0});
  std::ranges::copy(
      dropped_by_seeds(drop.shape, drop.grid.height, drop.grid.width, drop.window, dropped.subspan(off_grid)),
      dropped.begin() + static_cast<std::ptrdiff_t>(off_grid));
}

}  // namespace plumb
