// DropKey in a layer: its options, the drops that it is expected to make, and statistics of the drops that it made.
#pragma once

#include "core/drop_key.h"
#include "core/scope.h"
#include "nn/schedule.h"

namespace plumb::nn {

// The meaning of DropKey's rate.
enum class DropMatch {
  // The probability with which a key well inside the grid is dropped; the shapes derive their seed rates from it. Keys
  // near the border are dropped less often.
  rate,
  // The share of the patches that a row is expected to lose. It makes different shapes comparable.
  share
};
// The name of a match, the names of all (rate, share), and the match of a name. drop_match_named() throws Error for
// another name.
const char* name(DropMatch match);
const std::vector<std::string>& drop_match_names();
DropMatch drop_match_named(const std::string& name);

// Options of DropKey (Li et al., CVPR 2023). In training, each (head, query) loses each key with probability `rate`
// before the softmax. The other keys are not rescaled, because the softmax normalises them again. According to the
// authors, a rate that decreases over depth is best, and the structured shapes are worse than plain. One seed of a
// cross drops (H + W - 1) / (H W) of the keys, so the share of dropped keys varies a lot between draws: log it.
struct DropKey {
  double rate = 0;  // `match` defines its meaning
  Schedule schedule = Schedule::constant;
  EmptyRow empty = EmptyRow::keep_all;
  DropShape shape = DropShape::plain;
  std::int64_t window = 0;  // size of block and cross, odd; 0: 3 for block, 1 for cross
  DropSharing sharing = DropSharing::per_entry;
  DropMatch match = DropMatch::rate;
};

// In the functions below, drop_key.rate is the rate of the layer in question; schedule and match are ignored (except in
// by_rate). Rates are rounded to the 16 bits of a draw: r means round(65536 r) / 65536. Only the structured shapes need
// the grid. Errors are those of key_mask (core/drop_key.h).

// The probability [keys] with which a row loses each key. Plain: r. Block and cross: 1 - (1 - q)^n, where q is the seed
// rate and n the number of cells whose seed reaches the key; 0 for keys outside the grid.
std::vector<double> key_drop_probabilities(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// The mean of these probabilities: the share of its keys that a row is expected to lose.
double expected_drop_ratio(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// Converts DropMatch::share to DropMatch::rate: returns the same options with the rate at which a row is expected to
// lose the share drop_key.rate of the patches, as closely as the 16 bits of a draw allow. Attention layers call this
// themselves.
DropKey by_rate(DropKey drop_key, KeyGrid grid);

// An estimate of the probability that a row loses every key; sharing masks between rows does not change it. The result
// is exact, with standard_error 0, for plain (r^keys), for structured shapes if a key is outside the grid (0), and if
// at most 16 cells can be seeds (by enumeration). Otherwise it is the share of such rows among 100,000 rows with fixed
// draws; its standard error is that of Laplace's estimate (hits + 1) / (rows + 2), which is not 0 even without a hit.
struct Estimate {
  double probability, standard_error;
};
// The probability that a row loses every key, as described above.
Estimate empty_row_probability(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});

// The share of drops in one attention call, before the rule for empty rows. EmptyRow::keep_all restores the keys of
// empty rows; it then drops the share drop_ratio - empty_rows of the entries.
struct DropKeyStatistics {
  double drop_ratio = 0;  // share of the batch * heads * queries * keys entries that are dropped
  double empty_rows = 0;  // share of the rows that lost every key
};
// Repeats the draws of the op, which are not stored: with the same random_key, and step and first_sample of `random`.
// Throws Error for fewer than one sample, head, query or key.
DropKeyStatistics drop_key_statistics(const DropKey& drop_key, KeyGrid grid, std::int64_t batch, std::int64_t heads,
                                      std::int64_t queries, std::int64_t keys, std::uint64_t random_key,
                                      const RandomState& random);

}  // namespace plumb::nn
