// Compares two series of trials on one value, and judges comparisons as a family (docs/statistics.md).
//
// The rate of a series is chosen by a search, and luck in this choice is no property of a method. So the better side
// must also be better than the worse side at the two rates next to that of the worse side. The evidence that counts is
// the least evidence over these rates.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/stats/bets.h"

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

// Judges comparisons as one family, at order_level and at equality_level. Throws Error if outcomes of a contrast differ
// in length.
std::vector<Difference> judge_family(const std::vector<Contrast>& family);

}  // namespace plumb::lab
