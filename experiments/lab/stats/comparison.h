// Which of several series of trials did better, judged pair by pair: two trials that differ in what is compared and in
// nothing else, above all not in the seed, and so have the same data and the same draws.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

// What one series has at each seed: a number that is lower where it is better, as a loss is; infinity where the trial
// diverged, which is worse than any number; NaN where there is no trial.
using Outcomes = std::vector<double>;

struct Difference {
  enum class Order { undecided, lower, higher };  // the first than the second
  Order order = Order::undecided;
  std::int64_t n = 0;  // pairs, with those that diverged
  double mean = 0;     // of the differences; NaN without any
  double low = 0,
         high = 0;  // its interval; infinite for fewer than three pairs, which decide nothing; NaN where signs decide
  double level = 0.05;                                                          // at which it was judged
  double deviation = 0;                                                         // of a difference, as it was judged
  bool by_signs = false;                                                        // a trial diverged
  std::int64_t better = 0, worse = 0, diverged_first = 0, diverged_second = 0;  // pairs
};

// How many pairs would decide, with an even chance, if mean and deviation, or the shares of pairs, were as they seem:
// more than d.n; 0 where that is unknown or more than 1000.
std::int64_t pairs_needed(const Difference& d);
// "lower by 0.21, 95 % interval 0.17 to 0.25, 5 pairs"
std::string describe(const Difference& d);

// Judges pairs of these series, which have the same seeds, as one family: the chance that any pair is separated where
// no series differs is at most about 5 % (docs/statistics.md has what simulated studies give, and the power).
//
// A pair in which no trial diverged: the mean of its differences in t statistics, with Holm's correction over the
// family (Holm 1979). Two variances must both agree that the pair is apart. One is that of its differences, or, where
// that is larger, what it becomes when it is moderated by those of all pairs of the series (Smyth 2004). The other is
// the mean of the larger half of the variances of all pairs: where trainings either work or do not, three equal
// differences have next to no variance of their own, and are no evidence. The interval is of the level at which Holm's
// procedure judged the pair, so that it holds 0 exactly where the order is undecided.
//
// A pair with a trial that diverged: the exact sign test over seeds (both diverged: a tie), with the same correction;
// it needs six seeds to decide anything, and more in a family. There is no interval then.
std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family);
// Families: each series from the second on against the first; each against each (0,1), (0,2), .., (1,2), ..
std::vector<std::pair<std::size_t, std::size_t>> against_first(std::size_t series);
std::vector<std::pair<std::size_t, std::size_t>> all_pairs(std::size_t series);

}  // namespace plumb::lab
