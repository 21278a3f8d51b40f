// DropKey of a layer: its options, what it is expected to drop, and what it dropped.
#pragma once

#include "core/drop_key.h"
#include "core/scope.h"
#include "nn/schedule.h"

namespace plumb::nn {

// What DropKey's rate is a rate of.
enum class DropMatch {
  rate,  // the rate of a key that lies well inside the grid, as the shapes' seed rates have it; near the border keys
         // are dropped less
  share  // the share of patches that a row is expected to lose: what makes shapes comparable
};
const char* name(DropMatch match);
const std::vector<std::string>& drop_match_names();   // rate, share
DropMatch drop_match_named(const std::string& name);  // throws for another

// DropKey (Li et al., CVPR 2023): while training, each (head, query) loses each key with probability `rate` before the
// softmax. Survivors are not rescaled: the softmax renormalises. By its authors a decreasing schedule over depth is
// best, and the structured shapes are worse than plain. One seed of a cross drops (H + W - 1) / (H W) of the keys, so
// its ratio varies much between draws: log it.
struct DropKey {
  double rate = 0;  // of what, `match` says
  Schedule schedule = Schedule::constant;
  EmptyRow empty = EmptyRow::keep_all;
  DropShape shape = DropShape::plain;
  std::int64_t window = 0;  // of block and cross, odd; 0: block 3, cross 1
  DropSharing sharing = DropSharing::per_entry;
  DropMatch match = DropMatch::rate;
};

// In what follows drop_key.rate is the rate of the layer at hand (neither schedule nor match is looked at), and rates
// are those of the 16-bit draws: r means round(65536 r) / 65536. A grid is asked for by the structured shapes alone;
// errors are key_mask's (core/drop_key.h).

// The probability [keys] that a row loses each key. Plain: r. Block and cross: 1 - (1 - q)^n with seed rate q and the n
// cells whose seed reaches the key; 0 for keys off the grid.
std::vector<double> key_drop_probabilities(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// Their mean: the expected ratio of keys that a row loses.
double expected_drop_ratio(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});
// The same DropKey by rate: with DropMatch::share, at the rate at which a row is expected to lose drop_key.rate of the
// patches, within what the 16 bits of a seed's draw resolve. An attention layer asks for it itself.
DropKey by_rate(DropKey drop_key, KeyGrid grid);

// The probability that a row loses every key. A shared mask leaves each row's as it is. Exact, with standard_error 0,
// for plain (r^keys), for structured shapes where a key is off the grid (0), and where at most 16 cells can be seeds
// (by enumeration). Else the share among 100,000 rows of fixed draws, with the standard error of Laplace's estimate
// (hits + 1) / (rows + 2), which is not 0 if there was no hit.
struct Estimate {
  double probability, standard_error;
};
Estimate empty_row_probability(const DropKey& drop_key, std::int64_t keys, KeyGrid grid = {});

// What the draws of one attention call drop, before the rule for empty rows (keep_all takes empty rows' drops back: the
// share of entries that it leaves out is drop_ratio - empty_rows).
struct DropKeyStatistics {
  double drop_ratio = 0;  // dropped share of the batch * heads * queries * keys entries
  double empty_rows = 0;  // share of rows that lost every key
};
// By drawing again what the op draws with this random_key and, of `random`, step and first_sample: nothing was stored.
DropKeyStatistics drop_key_statistics(const DropKey& drop_key, KeyGrid grid, std::int64_t batch, std::int64_t heads,
                                      std::int64_t queries, std::int64_t keys, std::uint64_t random_key,
                                      const RandomState& random);

}  // namespace plumb::nn
