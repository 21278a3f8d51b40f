// The difference between two series of trials on one value, and its verdict (docs/statistics.md).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// The outcomes of one series by seed, as costs: lower is better. The cost is infinity if the trial failed (did not
// train), minus infinity if the seed is no bet for this series, and NaN if there is no trial or the trial ended in an
// error. Seeds count up to the first NaN of either series.
using Outcomes = std::vector<double>;

// Two series, seed by seed. A seed is a win of the first series if its cost, minus the margin, is below that of the
// second. A failed trial loses against a trained one; two failed trials are no bet.
struct Duel {
  std::int64_t seeds = 0, wins = 0, losses = 0;  // `seeds` includes those without a bet
  // Numbers of the seeds at which this series failed, and at which both did.
  std::int64_t failed_first = 0, failed_second = 0, failed_both = 0;
  std::vector<double> differences = {};  // first - second where both trained, without the margin
  double evidence = 1;                   // E after the last seed
  // The largest E over the seeds after which the first (second) series is ahead: it has more wins, and the mean
  // difference of the trained pairs, if there are any, favours it. 1 if the series is never ahead.
  double first_ahead = 1, second_ahead = 1;
};
// The sides of a comparison.
enum class Side { none, first, second };
// Whether the better side is also better at the neighbouring rates of the worse side.
enum class AtNeighbours {
  this_rate,   // no neighbour counts, or no side has lost
  yes,         // it is
  no,          // it is better at the chosen rate only
  not_trained  // a neighbour has no trials yet
};
constexpr auto names_of(AtNeighbours) { return std::array{"at this rate", "yes", "no", "not trained"}; }

// The result of a comparison. The part before `better` depends on the trials of the two arms only.
struct Difference {
  Duel duel = {};           // at the chosen rates
  Median median = {};       // of the differences, first - second, where both trained
  double evidence = 1;      // for the side that leads, at the chosen rates
  double at_all_rates = 1;  // the same, as the least over the neighbours of the other side
  double equality = 1;      // that the sides are equal within d
  // Seeds that the leading side wins and loses at the rate of the other side at which it wins the smallest share.
  std::int64_t least_wins = 0, least_losses = 0;
  std::optional<double> within;  // d
  Side better = Side::none;      // the verdict of order: the side with the lower costs
  bool equal = false;            // the verdict of equality
  Side lost = Side::none;        // the side that loses if only the chosen rates count; its neighbours are trained
  AtNeighbours neighbours = AtNeighbours::this_rate;
  // The neighbours of the side that lost, in half octaves: those that have no trials yet, and those beyond the bound.
  std::vector<int> wanted = {}, beyond = {};
  std::size_t family = 0;  // number of comparisons of the family
  // The evidence that a verdict of order, and of equality, needs in this family.
  double needs = unknown, equality_needs = unknown;
  std::string obstacle = {};
};

// The obstacle to a verdict of order, and to no other verdict.
inline constexpr const char* below_resolution = "the difference is below the resolution of the measure";

// The comparison of the negated values: wins are losses, and the sides stay.
Difference negated(Difference d);
// The comparison with its sides exchanged.
Difference turned(Difference d);
// The verdict in words about the first side: "better", "worse", "equal within 0.05", "no verdict".
std::string verdict_words(const Difference& d);
// A median difference with its interval in words, for values with the sign `sign` (-1 if higher values are better):
// "lower by 0.21 (0.17 to 0.25)".
std::string effect_words(const Median& median, double sign);
// The reason of a verdict in words: wins and losses, the effect, the failed seeds, the evidence and the evidence that
// the family needs, and whether the verdict stands at the neighbours: "6:0, lower by 0.21 (0.17 to 0.25); E = 452,
// needs 160 in a family of 8; stands at its neighbours".
std::string describe(const Difference& d, double sign);

// The columns of a difference in a CSV table, and its cells.
inline constexpr std::array difference_columns{"wins",          "losses", "seeds",    "failed_first", "failed_second",
                                               "difference",    "low",    "high",     "evidence",     "needs",
                                               "at_neighbours", "stands", "equality", "obstacle"};
void add_cells(CsvTable& table, const Difference& d, double sign);

}  // namespace plumb::lab
