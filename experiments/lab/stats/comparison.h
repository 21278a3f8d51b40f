// Compares two series of trials on one value, and judges comparisons as a family (docs/statistics.md).
//
// The rate of a series is chosen by a search, and luck in this choice is no property of a method. So the better side
// must also be better than the worse side at the two rates next to that of the worse side. The evidence that counts is
// the least evidence over these rates.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/stats/bets.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {

// The levels of a family: the chance of any wrong verdict of order, and of any wrong verdict of equality.
inline constexpr double order_level = 0.05, equality_level = 0.02;

// The trials of one side of a comparison. All outcomes are at the same seeds.
struct Arm {
  Outcomes costs = {};  // at the chosen rate
  // At the rates of this many half octaves above the chosen rate (below, if negative), where these were trained.
  std::map<int, Outcomes> neighbours = {};
  std::vector<int> beyond = {};  // the half octaves that lie beyond the bound of the rate
  // Whether no neighbour counts: the rate was not chosen by a search, or does not change the value.
  bool at_this_rate = true;
};

// A comparison of two arms.
struct Contrast {
  Arm first = {}, second = {};
  double margin = 0;  // added to the second arm
  Tie tie = Tie::no_bet;
  std::optional<double> equal_within = {};  // the difference d of a verdict of equality; empty: no such verdict
  double resolution = 0;                    // a smaller median difference decides nothing
  std::string obstacle = {};                // why the comparison cannot be judged; empty if it can
  double weight = 1;                        // in its family
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
  Duel duel = {};                // at the chosen rates
  Median median = {};            // of the differences, first - second, where both trained
  double evidence = 1;           // for the side that leads, at the chosen rates
  double at_all_rates = 1;       // the same, as the least over the neighbours of the other side
  double equality = 1;           // that the sides are equal within d
  std::optional<double> within;  // d
  Side better = Side::none;      // the verdict of order: the side with the lower costs
  bool equal = false;            // the verdict of equality
  Side lost = Side::none;        // the side that loses if only the chosen rates count; its neighbours are trained
  AtNeighbours neighbours = AtNeighbours::this_rate;
  // The neighbours of the side that lost, in half octaves: those that have no trials yet, and those beyond the bound.
  std::vector<int> wanted = {}, beyond = {};
  std::size_t family = 0;  // number of comparisons of the family
  double needs = unknown;  // the evidence that a verdict of order needs in this family
  std::string obstacle = {};
};

// Judges comparisons as one family, at order_level and at equality_level. Throws Error if outcomes of a contrast differ
// in length.
std::vector<Difference> judge_family(const std::vector<Contrast>& family);

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
