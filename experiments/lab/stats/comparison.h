// Compares series of trials pair by pair. The two trials of a pair have the same seed, and differ only in the compared
// setting. The same seed gives both trials the same data and the same random draws.
//
// A pair of series is judged twice. The verdict on the losses concerns the seeds at which both series trained. The
// verdict on training says whether one series trains less often. docs/statistics.md explains the rule, and has the
// rates of wrong verdicts and the power in simulated studies.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace plumb::lab {

// The outcome of one series at each seed. The outcome is a number, such as a loss; a lower number is better. The
// outcome is infinity if the trial did not train (trained.h). The outcome is NaN if there is no trial.
using Outcomes = std::vector<double>;

// The chance of a wrong verdict in a family, as far as a rule can limit it. Losses are judged at half of this
// level, because a t statistic of few losses with rare outliers is wrong more often than its level says.
inline constexpr double family_level = 0.05;
// The level of the look with this number, counted from 1. The first look has the seeds that were planned. If seeds are
// added later, look k is judged at family_level / 2^k, so that all looks together have at most one and a half times the
// level of the first look.
double level_of_look(std::int64_t look);

// The upper limit of the share of seeds that do not train, if `trained` of `seeds` seeds trained (Clopper and Pearson
// 1934, one-sided, 95 %): 63 % for 3 of 3, 53 % for 4 of 4, 39 % for 6 of 6. The limit is 1 if no seed trained.
double may_fail(std::int64_t trained, std::int64_t seeds);

// The difference of two series, first minus second.
struct Difference {
  // The verdict on the losses of the first series, compared with the second.
  enum class Order { undecided, lower, higher };
  // The verdict on how often the first series trains, compared with the second.
  enum class Training { undecided, more_often, less_often };
  // Why the losses are undecided although the interval has no 0.
  enum class Doubt {
    none,
    few_pairs,   // fewer than four series of the section trained at all seeds, and fewer than six pairs
    same,        // the difference is the same number in every pair, and no other pair tells how it would vary
    spread,      // the losses of the two series vary by different amounts, as losses with rare outliers do
    signs,       // fewer than four series of the section trained at all seeds, and the sign test does not decide
    not_all,     // the comparison has a margin, and some trial did not train or fewer than six seeds trained
    resolution,  // the difference is below the resolution of the value
    too_wide     // a placebo is within the margin in nine of ten studies (claims.h)
  };

  Order order = Order::undecided;
  Training training = Training::undecided;
  Doubt doubt = Doubt::none;
  std::int64_t n = 0;                                  // number of seeds at which both series have an outcome
  std::int64_t trained = 0;                            // number of these seeds at which both series trained
  std::int64_t trained_first = 0, trained_second = 0;  // number of the n seeds at which this series trained
  double mean = 0;  // mean difference over the seeds at which both series trained; NaN if there is no such seed
  // The interval of the mean. The interval is infinite for fewer than three pairs, which decide nothing.
  double low = 0, high = 0;
  double level = family_level;  // significance level at which the losses were judged
  double deviation = 0;         // standard deviation of a single difference, as used for the verdict
  std::int64_t fewest = 3;      // the least number of pairs that can decide the losses in this section
  bool same = false;            // whether the difference is the same number in every one of three or more pairs
  // Whether both series trained at all n seeds.
  bool all_trained() const { return trained == n; }
};

// The difference of the negated values. Training does not depend on the sign of values.
Difference negated(Difference d);

// The number of pairs that would decide with a chance of one half. The number assumes that the true mean and deviation
// are those of `d`. If fewer than two seeds trained with both series, the number assumes that the true shares of seeds
// that trained are those of `d`, and concerns the verdict on training. The number is 0 if it is unknown or above 1000.
std::int64_t pairs_needed(const Difference& d);
// The difference in words: "lower by 0.21, 97.5 % interval 0.17 to 0.25, 5 pairs; 5 of 5 and 5 of 5 seeds trained, up
// to 45 % may still fail".
std::string describe(const Difference& d);
// The reason of a doubt in words; empty for Doubt::none.
std::string to_string(Difference::Doubt doubt);

// The variances of the differences of all pairs of a section: the series that were trained under one condition.
struct Variances {
  Variances() = default;
  // Throws Error if the series differ in length.
  explicit Variances(const std::vector<Outcomes>& section);

  // The number of series that trained at all of at least two seeds; with six seeds or more, one further series may have
  // lost seeds. 0 if no variance is known.
  std::int64_t series = 0;
  // The parameters of Smyth's scaled inverse chi-squared distribution (Smyth 2004, section 6.2). The parameters are
  // unknown if `degrees` is 0.
  double degrees = 0, variance = 0;
  double pooled_degrees = 0, pooled_variance = 0;  // degrees and mean of the larger half of the variances
  double smallest = 0;                             // least variance that is used, because exact ties are no evidence
};

// Two series to compare, within a section.
struct Contrast {
  Outcomes first = {}, second = {};
  Variances section = {};
  double margin = 0;      // added to `second` before the comparison
  bool constant = false;  // whether `second` is a constant instead of trials
  bool training = true;   // whether the verdict on training is judged
  double resolution = 0;  // a smaller mean difference decides nothing
  // The sign of losses: 1 for outcomes that are losses, -1 for negated losses, and 0 for values whose ratios say
  // nothing about outliers, such as accuracies. The exception for ratios of losses (judge_family) needs the sign.
  int losses = 1;
};

// Judges contrasts as one family. If no two series differ, the chance that any verdict is decided is at most about 5 %.
//
// Losses: a t statistic of the mean difference over the seeds at which both series trained, with Holm's correction over
// the family (Holm 1979), at half of `level`. In a section of four or more series, the test must be significant with
// each of two variances. The first is the variance of the pair's differences, or the variance moderated by the
// variances of all pairs of the section (Smyth 2004) if the moderated variance is larger. The second is the mean of the
// larger half of the variances of all pairs. The degrees of freedom are at most five times those of the pair. The pair
// alone must also be significant at `level`, without the correction. If the variances of the two series differ (F test
// at 8.5 %), nothing is decided, because a mean of few values with rare outliers has an unknown error. Exceptions are
// differences of ten standard deviations of the more variable series, and, for six or more losses above 0 (Contrast::
// losses), logarithms that differ by ten times s^2 / 2, where s is the larger standard deviation of the logarithms.
//
// In a section of fewer than four such series, and against a constant, there is little to borrow: six seeds are needed,
// the exact sign test must be significant at 5 %, and the F test refuses at 20 %. A margin above 0 also needs six
// seeds, and both series must have trained at all of them.
//
// Training: the exact paired test over the seeds at which only one of the two series trained (McNemar 1947), with
// Holm's correction at `level`. A pair with fewer than six such seeds cannot be decided, and does not count in the
// family.
//
// If the losses are decided, the interval does not contain 0. The interval has the level at which Holm's procedure
// judged the contrast. Throws Error if two series of a contrast differ in length.
std::vector<Difference> judge_family(const std::vector<Contrast>& family, double level = family_level);

// Whether the losses or the training are decided, and the verdict in words: "lower", "lower, trains less often", "no
// verdict".
bool is_decided(const Difference& d);
std::string verdict_words(const Difference& d);

// Judges pairs of series of one section as one family.
std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family,
                                double level = family_level);
// The two usual families of pairs. against_first() compares each later series with the first. all_pairs() has all pairs
// (0,1), (0,2) to (n-2,n-1).
std::vector<std::pair<std::size_t, std::size_t>> against_first(std::size_t series);
std::vector<std::pair<std::size_t, std::size_t>> all_pairs(std::size_t series);

}  // namespace plumb::lab
