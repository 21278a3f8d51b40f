// Compares series of trials pair by pair. The two trials of a pair have the same seed, so they see the same data and
// the same random draws, and they differ only in the setting that is compared.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

// The outcome of one series at each seed: a number that is lower if the trial is better, such as a loss; infinity if
// the trial diverged, which is worse than any number; NaN if there is no trial.
using Outcomes = std::vector<double>;

// The difference of two series, first minus second.
struct Difference {
  // The verdict on the first series, compared with the second.
  enum class Order { undecided, lower, higher };
  Order order = Order::undecided;
  std::int64_t n = 0;  // pairs, including those in which a trial diverged
  double mean = 0;     // mean difference; NaN if there is none
  // The interval of the mean. It is infinite for fewer than three pairs, which decide nothing, and NaN if `by_signs`.
  double low = 0, high = 0;
  double level = 0.05;    // significance level at which the pair was judged
  double deviation = 0;   // standard deviation of a single difference, as used in the judgement
  bool by_signs = false;  // whether a trial diverged, so that the sign test decides
  std::int64_t better = 0, worse = 0, diverged_first = 0, diverged_second = 0;  // numbers of pairs
};

// The number of pairs that would decide the order with a chance of one half, if the true mean and deviation (or the
// true shares of better and worse pairs) are those of `d`. It is above d.n, or 0 if it is unknown or above 1000.
std::int64_t pairs_needed(const Difference& d);
// The difference in words: "lower by 0.21, 95 % interval 0.17 to 0.25, 5 pairs".
std::string describe(const Difference& d);

// Judges pairs of series as one family; all series have the same seeds. If no two series differ, the chance that any
// pair is decided is at most about 5 % (docs/statistics.md shows rates in simulated studies, and the power). Throws
// Error if the series differ in length.
//
// A pair in which no trial diverged is judged by a t statistic of its mean difference, with Holm's correction over the
// family (Holm 1979). The test must be significant with each of two variances. The first is the variance of the pair's
// differences, or the same moderated by the variances of all pairs of the series (Smyth 2004) if that is larger. The
// second is the mean of the larger half of the variances of all pairs: if trainings either work or fail, three equal
// differences have almost no variance and are still no evidence. The interval has the level at which Holm's procedure
// judged the pair, so it contains 0 exactly if the order is undecided.
//
// A pair in which a trial diverged is judged by the exact sign test over seeds, with the same correction; if both
// trials of a seed diverged, they tie. The test needs at least six seeds, and more in a family. There is no interval.
std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family);
// The two usual families: each later series against the first; and all pairs (0,1), (0,2) to (n-2,n-1)
std::vector<std::pair<std::size_t, std::size_t>> against_first(std::size_t series);
std::vector<std::pair<std::size_t, std::size_t>> all_pairs(std::size_t series);

}  // namespace plumb::lab
