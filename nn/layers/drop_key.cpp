#include "nn/layers/drop_key.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "core/random.h"

namespace plumb::nn {
namespace {

KeyMask draws_of(const DropKey& o, std::int64_t keys, KeyGrid grid, std::uint64_t random_key) {
  check(keys > 0, "[drop_key] expected at least one key, got {}", keys);
  return key_mask(o.rate, o.shape, o.window, o.sharing, grid, keys, random_key);
}

bool all_dropped(std::span<const std::uint8_t> dropped) { return std::ranges::find(dropped, 0) == dropped.end(); }

// Returns the probability of an empty row: a sum over all sets of seeds. `seed_cells` are the cells that can be a seed.
double empty_by_enumeration(const KeyMask& drop, double seed_rate, const std::vector<std::size_t>& seed_cells) {
  double probability = 0;
  std::vector<std::uint8_t> seeds(static_cast<std::size_t>(drop.grid.cells()));
  for (unsigned set = 0; set < 1u << seed_cells.size(); ++set) {
    for (std::size_t i = 0; i < seed_cells.size(); ++i) seeds[seed_cells[i]] = set >> i & 1u;
    if (!all_dropped(dropped_by_seeds(drop.shape, drop.grid.height, drop.grid.width, drop.window, seeds))) continue;
    const int count = std::popcount(set);
    probability += std::pow(seed_rate, count) * std::pow(1 - seed_rate, static_cast<int>(seed_cells.size()) - count);
  }
  return probability;
}

Estimate empty_by_draws(const KeyMask& drop, std::int64_t keys) {
  constexpr std::int64_t rows = 100'000;
  std::vector<std::uint8_t> dropped(static_cast<std::size_t>(keys));
  std::int64_t hits = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    drop_keys(drop, 0, row, 1, 0, 0, dropped);
    hits += all_dropped(dropped);
  }
  const double n = rows, k = static_cast<double>(hits), laplace = (k + 1) / (n + 2);
  return {.value = k / n, .standard_error = std::sqrt(laplace * (1 - laplace) / n), .exact = false};
}

}  // namespace

std::vector<double> key_drop_probabilities(const DropKey& drop_key, std::int64_t keys, KeyGrid grid) {
  const KeyMask drop = draws_of(drop_key, keys, grid, 0);
  const double rate = drop.threshold / 65536.0;
  if (drop.shape == DropShape::plain) return std::vector<double>(static_cast<std::size_t>(keys), rate);
  const std::int64_t H = grid.height, W = grid.width, w = drop.window;
  // The seeds of the shape `block` are centres c with w / 2 <= c < n - w / 2 on each axis. The seeds of the shape
  // `cross` are all cells.
  const auto near = [&](std::int64_t i,
                        std::int64_t n) {  // number of seeds at distance w / 2 or less from i, on one axis
    const std::int64_t reach = w / 2, first = drop.shape == DropShape::block ? reach : 0;
    return std::min(i + reach, n - 1 - first) - std::max(i - reach, first) + 1;
  };
  std::vector<double> probabilities(static_cast<std::size_t>(keys - grid.cells()), 0.0);
  for (std::int64_t i = 0; i < H; ++i)
    for (std::int64_t j = 0; j < W; ++j) {
      const std::int64_t a = near(i, H), b = near(j, W),
                         seeds = drop.shape == DropShape::block ? a * b : a * W + b * H - a * b;
      probabilities.push_back(1 - std::pow(1 - rate, seeds));
    }
  return probabilities;
}

double expected_drop_ratio(const DropKey& drop_key, std::int64_t keys, KeyGrid grid) {
  const std::vector<double> p = key_drop_probabilities(drop_key, keys, grid);
  return std::accumulate(p.begin(), p.end(), 0.0) / static_cast<double>(keys);
}

DropKey by_rate(DropKey o, KeyGrid grid) {
  if (std::exchange(o.match, DropMatch::rate) == DropMatch::rate || o.shape == DropShape::plain || o.rate == 0)
    return o;
  check(0 <= o.rate && o.rate <= 1, "[drop_key] expected a share in [0, 1], got {}", o.rate);
  const double share = o.rate;
  double low = 0, high = 1;
  for (int i = 0; i < 60; ++i) {
    o.rate = (low + high) / 2;
    (expected_drop_ratio(o, grid.cells(), grid) < share ? low : high) = o.rate;
  }
  o.rate = high;
  return o;
}

Estimate empty_row_probability(const DropKey& drop_key, std::int64_t keys, KeyGrid grid) {
  const KeyMask drop = draws_of(drop_key, keys, grid, random_key(0, "empty_row_probability"));
  const double rate = drop.threshold / 65536.0;
  if (drop.shape == DropShape::plain) return {.value = std::pow(rate, keys)};
  if (keys > grid.cells()) return {};
  std::vector<std::size_t> seed_cells;
  const std::int64_t edge = drop.shape == DropShape::block ? drop.window / 2 : 0;
  for (std::int64_t i = edge; i < grid.height - edge; ++i)
    for (std::int64_t j = edge; j < grid.width - edge; ++j)
      seed_cells.push_back(static_cast<std::size_t>(i * grid.width + j));
  if (seed_cells.size() <= 16) return {.value = empty_by_enumeration(drop, rate, seed_cells)};
  return empty_by_draws(drop, keys);
}

DropKeyStatistics drop_key_statistics(const DropKey& drop_key, KeyGrid grid, std::int64_t batch, std::int64_t heads,
                                      std::int64_t queries, std::int64_t keys, std::uint64_t random_key,
                                      const RandomState& random, bool causal) {
  check(batch > 0 && heads > 0 && queries > 0,
        "[drop_key] expected at least one sample, head and query, got {}, {} and {}", batch, heads, queries);
  const KeyMask drop = draws_of(drop_key, keys, grid, random_key);
  if (!drop.threshold) return {};
  // Heads or queries that share a mask lose the same keys, so one head or one query is enough. Causal queries see
  // different keys.
  const std::int64_t H = drop.sharing == DropSharing::heads ? 1 : heads,
                     N = drop.sharing == DropSharing::column && !causal ? 1 : queries;
  std::vector<std::uint8_t> dropped(static_cast<std::size_t>(keys));
  std::int64_t seen = 0, lost = 0, empty = 0;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < H; ++h)
      for (std::int64_t n = 0; n < N; ++n) {
        drop_keys(drop, random.step, random.first_sample + b, heads, h, n, dropped);
        const std::int64_t sees = causal ? std::max<std::int64_t>(n + 1 + keys - queries, 0) : keys;
        const std::int64_t gone = std::count(dropped.begin(), dropped.begin() + sees, 1);
        seen += sees, lost += gone;
        empty += sees > 0 && gone == sees;
      }
  return {static_cast<double>(lost) / static_cast<double>(seen),
          static_cast<double>(empty) / static_cast<double>(batch * H * N)};
}

}  // namespace plumb::nn
