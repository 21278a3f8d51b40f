// DropKey in a layer: the options, the expected drops, and statistics of the actual drops.
#pragma once

#include "core/drop_key.h"
#include "core/estimate.h"
#include "core/scope.h"
#include "nn/layers/drop_schedule.h"

namespace plumb::nn {

// The meaning of DropKey's rate.
enum class DropMatch {
  // The rate is the probability with which a key far from the border of the grid is dropped. The shapes derive their
  // seed rates from this rate. Keys near the border are dropped less often.
  rate,
  // The rate is the share of the patches that a row is expected to lose. With this match, different shapes can be
  // compared.
  share
};
constexpr auto names_of(DropMatch) { return std::array{"rate", "share"}; }

// Options of DropKey (Li et al., CVPR 2023). In training, each (head, query) loses each key with probability `rate`
// before the softmax. The other keys are not rescaled, because the softmax normalises them again. According to the
// authors, a rate that decreases over depth is best, and the structured shapes are worse than `plain`. One seed of a
// cross drops (H + W - 1) / (H W) of the keys, so the share of dropped keys varies a lot between draws. Log this share
// (drop_key_statistics()).
struct DropKey {
  double rate = 0;  // `match` defines the meaning of the rate
  Schedule schedule = Schedule::constant;
  EmptyRow empty = EmptyRow::keep_all;
  DropShape shape = DropShape::plain;
  // The size of the shapes `block` and `cross`, odd. 0 means the default: 3 for `block`, 1 for `cross`.
  std::int64_t window = 0;
  DropSharing sharing = DropSharing::per_entry;
  DropMatch match = DropMatch::rate;
};

// In the functions below, drop_key.rate is the rate of one layer. The functions ignore `schedule`, and all functions
// except by_rate() ignore `match`. Rates are rounded to the 16 bits of a draw: r means round(65536 r) / 65536. Only the
// structured shapes need the grid. The functions throw the errors of key_mask() (core/drop_key.h).

// Returns the probabilities [keys] with which a row loses each key. For `plain`, each probability is r. For `block` and
// `cross`, the probability is 1 - (1 - q)^n, where q is the seed rate and n is the number of cells whose seed drops the
// key; for keys outside the grid, the probability is 0.
std::vector<double> key_drop_probabilities(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// Returns the mean of key_drop_probabilities(): the share of the keys that a row is expected to lose.
double expected_drop_ratio(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// Converts options with DropMatch::share to options with DropMatch::rate. The returned rate is the rate at which a row
// is expected to lose the share drop_key.rate of the patches, as closely as the 16 bits of a draw allow. Attention
// layers call by_rate() in their constructors.
DropKey by_rate(DropKey drop_key, KeyGrid grid);

// Returns the probability that a row loses every key. The probability does not depend on `sharing`. The result
// is exact in three cases: for `plain` (r^keys); for structured shapes if a key is outside the
// grid (probability 0); and for structured shapes if at most 16 cells can be seeds (by enumeration). Otherwise the
// estimate is the share of such rows (hits) among 100,000 rows with fixed draws. The standard error then belongs to
// Laplace's estimate (hits + 1) / (rows + 2), so the standard error is not 0 even without a hit.
Estimate empty_row_probability(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});

// The shares of drops in one attention call, before the rule for empty rows (`empty`) is applied. Without causal
// attention, EmptyRow::keep_all restores the keys of empty rows, so this rule drops the share drop_ratio - empty_rows
// of the entries.
struct DropKeyStatistics {
  double drop_ratio = 0;  // share of dropped entries among all entries (row, key) in which the row may see the key
  double empty_rows = 0;  // share of the rows (sample, head, query) whose keys were all dropped
};
// Computes the statistics of one attention call. The draws of the op are not stored; the function repeats these draws
// from random_key and from step and first_sample of `random`. With `causal`, a row sees the keys as in attention()
// (ops.h); a row that sees no key has not lost a key. Throws Error for fewer than one sample, head, query or key.
DropKeyStatistics drop_key_statistics(const DropKey& drop_key, KeyGrid grid, std::int64_t batch, std::int64_t heads,
                                      std::int64_t queries, std::int64_t keys, std::uint64_t random_key,
                                      const RandomState& random, bool causal = false);

}  // namespace plumb::nn
