// Compares series of trials pair by pair. The two trials of a pair have the same seed, and differ only in the compared
// setting. The same seed gives both trials the same data and the same random draws.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

// The outcome of one series at each seed. The outcome is a number, such as a loss; a lower number is better. The
// outcome is infinity if the trial diverged, which is worse than any number. The outcome is NaN if there is no trial.
using Outcomes = std::vector<double>;

// The difference of two series, first minus second.
struct Difference {
  // The verdict on the first series, compared with the second.
  enum class Order { undecided, lower, higher };
  Order order = Order::undecided;
  std::int64_t n = 0;  // number of pairs, including pairs in which a trial diverged
  double mean = 0;     // mean difference; NaN if no pair has a difference
  // The interval of the mean. The interval is infinite for fewer than three pairs, which decide nothing. The interval
  // is NaN if `by_signs`.
  double low = 0, high = 0;
  double level = 0.05;    // significance level at which the pair of series was judged
  double deviation = 0;   // standard deviation of a single difference, as used for the verdict
  bool by_signs = false;  // whether a trial diverged; the sign test then decides
  // Numbers of pairs in which the first series is better or worse, and in which the trial of the first or the second
  // series diverged.
  std::int64_t better = 0, worse = 0, diverged_first = 0, diverged_second = 0;
};

// The number of pairs that would decide the order with a chance of one half. The number assumes that the true mean and
// deviation (or the true shares of better and worse pairs) are those of `d`. The number is above d.n, or 0 if the
// number is unknown or above 1000.
std::int64_t pairs_needed(const Difference& d);
// The difference in words: "lower by 0.21, 95 % interval 0.17 to 0.25, 5 pairs".
std::string describe(const Difference& d);

// Judges pairs of series as one family. All series have the same seeds. If no two series differ, the chance that any
// pair is decided is at most about 5 %. docs/statistics.md shows rates of wrong verdicts in simulated studies, and the
// power. Throws Error if the series differ in length.
//
// A pair in which no trial diverged is judged by a t statistic of its mean difference, with Holm's correction over the
// family (Holm 1979). The test must be significant with each of two variances. The first is the variance of the pair's
// differences, or the variance moderated by the variances of all pairs of the series (Smyth 2004) if the moderated
// variance is larger. The second is the mean of the larger half of the variances of all pairs. The second variance is
// needed if trainings either work or fail: three equal differences then have almost no variance, but are no evidence.
// The interval has the level at which Holm's procedure judged the pair, so the interval contains 0 exactly if the order
// is undecided.
//
// A pair in which a trial diverged is judged by the exact sign test over seeds, with the same correction. A seed at
// which both trials diverged is a tie. The test needs at least six seeds, and more seeds in a family. There is no
// interval.
std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family);
// The two usual families of pairs. against_first() compares each later series with the first. all_pairs() has all pairs
// (0,1), (0,2) to (n-2,n-1).
std::vector<std::pair<std::size_t, std::size_t>> against_first(std::size_t series);
std::vector<std::pair<std::size_t, std::size_t>> all_pairs(std::size_t series);

}  // namespace plumb::lab
