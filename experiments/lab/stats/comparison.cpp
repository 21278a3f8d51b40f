#include "experiments/lab/stats/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "core/error.h"
#include "experiments/lab/stats/distributions.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t fewest_pairs = 3, fewest_alone = 6, most_needed = 1000;
constexpr std::int64_t borrows_from = 4;  // the least number of series in a section whose variances are borrowed
constexpr double most_degrees = 5;        // times the degrees of freedom of the pair
constexpr double unequal = 0.085, unequal_alone = 0.2;  // levels of the F test
constexpr double beyond_doubt = 10;                     // see is_doubtful()
constexpr double of_losses = 0.5;                       // part of the level at which losses are judged
constexpr double infinity = std::numeric_limits<double>::infinity();

// The probability that |T| is above |t|.
double two_sided(double t, double degrees) { return std::min(1.0, 2 * student_t_tail(std::abs(t), degrees)); }

// Two-sided critical values of Student's t by level and degrees of freedom. Each value is computed once, because the
// computation is slow.
class Bounds {
 public:
  double operator()(double at, double degrees) {
    const auto [bound, is_new] = known_.try_emplace({at, degrees});
    if (is_new) bound->second = student_t_quantile(1 - at / 2, degrees);
    return bound->second;
  }

 private:
  std::map<std::pair<double, double>, double> known_;
};

// The mean and the variance of values, by Welford's method (1962). The mean of no value is NaN. The variance is
// unbiased, and 0 for fewer than two values.
struct Moments {
  std::int64_t n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN(), squares = 0;
  void add(double x) {
    if (n == 0) mean = 0;
    const double off = x - mean;
    mean += off / static_cast<double>(++n);
    squares += off * (x - mean);
  }
  double variance() const { return n < 2 ? 0 : squares / static_cast<double>(n - 1); }
};

struct Pair {
  Moments difference, first, second;  // over the seeds at which both series trained
  Moments log_first, log_second;      // of the logarithms of losses above 0
  std::int64_t n = 0, lower = 0, higher = 0, only_first = 0, only_second = 0, trained_first = 0, trained_second = 0;
  bool all_trained() const { return difference.n == n; }
};

// `losses` is Contrast::losses.
Pair pair_of(const Outcomes& a, const Outcomes& b, double margin = 0, int losses = 1) {
  Pair pair;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) continue;
    ++pair.n;
    const bool first = std::isfinite(a[i]), second = std::isfinite(b[i]);
    pair.trained_first += first, pair.trained_second += second;
    pair.only_first += first && !second, pair.only_second += second && !first;
    if (!first || !second) continue;
    const double difference = a[i] - b[i] - margin;
    pair.lower += difference<0, pair.higher += difference> 0;
    pair.difference.add(difference), pair.first.add(a[i]), pair.second.add(b[i]);
    if (losses * a[i] > 0) pair.log_first.add(std::log(losses * a[i]));
    if (losses * b[i] > 0) pair.log_second.add(std::log(losses * b[i]));
  }
  return pair;
}

// The p value of the two-sided F test for equal variances of two series. The series share random draws, so their
// variances differ less than independent variances would.
double equal_variances(const Pair& pair) {
  const double a = pair.first.variance(), b = pair.second.variance();
  const auto degrees = static_cast<double>(pair.difference.n - 1);
  if (a == b) return 1;
  if (std::min(a, b) == 0) return 0;
  return std::min(1.0, 2 * fisher_f_tail(std::max(a / b, b / a), degrees, degrees));
}

// Whether a difference of means could come from rare outliers that these seeds do not have. Only series that vary by
// different amounts are doubtful. The difference is beyond doubt if it is ten standard deviations of the more
// variable series, or, for six or more losses above 0, if the mean logarithms differ by ten times s^2 / 2, where s is
// the larger standard deviation of the logarithms: s^2 / 2 is the logarithm of the ratio between mean and median of
// lognormal losses.
bool is_doubtful(const Pair& pair, double level) {
  if (equal_variances(pair) >= level) return false;
  if (std::abs(pair.difference.mean) >=
      beyond_doubt * std::sqrt(std::max(pair.first.variance(), pair.second.variance())))
    return false;
  const Moments &first = pair.log_first, &second = pair.log_second;
  return pair.difference.n < fewest_alone || first.n < pair.difference.n || second.n < pair.difference.n ||
         std::abs(first.mean - second.mean) < beyond_doubt * 0.5 * std::max(first.variance(), second.variance());
}

// The statistics of a mean difference with up to three variances: alone, moderated and pooled.
struct Evidence {
  double error[3], degrees[3];
  int count = 0;
  void add(double variance, double n, double freedom) {
    error[count] = std::sqrt(variance / n), degrees[count++] = freedom;
  }
  double largest_error() const { return *std::max_element(error, error + count); }
  // The p value of a mean with one of the variances. The result is 1 if the standard error is 0, as for exact ties, or
  // if the t statistic is too small to be significant with any number of degrees of freedom.
  double p(double mean, int i) const {
    return error[i] == 0 || std::abs(mean) < 1.95 * error[i] ? 1 : two_sided(mean / error[i], degrees[i]);
  }
};

Evidence evidence_of(const Pair& pair, const Variances& section) {
  const auto n = static_cast<double>(pair.difference.n);
  const double own = std::max(pair.difference.variance(), section.smallest), d = n - 1;
  Evidence e{};
  e.add(own, n, d);
  if (section.series < borrows_from) return e;
  const double moderated = std::max(own, std::isinf(section.degrees)
                                             ? section.variance
                                             : (section.degrees * section.variance + d * own) / (section.degrees + d));
  e.add(moderated, n, std::min({section.degrees + d, section.pooled_degrees, most_degrees * d}));
  e.add(std::max(section.pooled_variance, section.smallest), n, std::min(section.pooled_degrees, most_degrees * d));
  return e;
}

// A hypothesis of a family: the contrast with this index shows no difference.
struct Hypothesis {
  std::size_t index;
  double p;
};

// Holm's procedure (1979). Calls f(index, level, decided) for each hypothesis, where `level` is the level at which the
// hypothesis was judged.
template <class F>
void holm(std::vector<Hypothesis> family, double level, F&& f) {
  std::ranges::stable_sort(family, {}, &Hypothesis::p);
  double at = level;
  bool stopped = false;
  for (std::size_t k = 0; k < family.size(); ++k) {
    if (!stopped) at = level / static_cast<double>(family.size() - k);
    stopped = stopped || family[k].p > at;
    f(family[k].index, at, !stopped);
  }
}

// The comparison of the losses of one contrast.
struct Losses {
  Difference difference;  // without the verdict
  Evidence evidence = {};
  double p = 1;
};

Losses losses_of(const Contrast& c, const Pair& pair, double level) {
  using Doubt = Difference::Doubt;
  const bool small = c.section.series < borrows_from;
  Losses l{.difference = {.n = pair.n,
                          .trained = pair.difference.n,
                          .trained_first = pair.trained_first,
                          .trained_second = pair.trained_second,
                          .mean = pair.difference.mean,
                          .fewest = small || c.margin > 0 ? fewest_alone : fewest_pairs,
                          .same = pair.difference.n >= fewest_pairs && pair.difference.variance() == 0}};
  Difference& d = l.difference;
  if (d.trained < 2) return l;
  const Evidence& e = l.evidence = evidence_of(pair, c.section);
  d.deviation = e.largest_error() * std::sqrt(static_cast<double>(d.trained));
  if (d.trained < fewest_pairs) return l;
  const double p_alone = e.p(d.mean, 0);
  double p = e.count == 1 ? p_alone : 0;
  for (int i = 1; i < e.count; ++i) p = std::max(p, e.p(d.mean, i));
  if (p > of_losses * level || p_alone > level) return l;
  d.doubt = c.margin > 0 && (!pair.all_trained() || d.trained < fewest_alone)   ? Doubt::not_all
            : small && d.trained < fewest_alone                                 ? Doubt::few_pairs
            : small && sign_test(pair.lower, pair.higher) > 0.05                ? Doubt::signs
            : !c.constant && is_doubtful(pair, small ? unequal_alone : unequal) ? Doubt::spread
            : std::abs(d.mean + c.margin) < c.resolution                        ? Doubt::resolution
                                                                                : Doubt::none;
  if (d.doubt == Doubt::none) l.p = p;
  return l;
}

}  // namespace

double level_of_look(std::int64_t look) {
  return look <= 1 ? family_level : family_level / std::pow(2, static_cast<double>(look));
}

double may_fail(std::int64_t trained, std::int64_t seeds) {
  return trained == 0 ? 1 : upper_share(seeds - trained, seeds, 0.95);
}

Variances::Variances(const std::vector<Outcomes>& section) {
  for (const Outcomes& s : section)
    check(s.size() == section[0].size(), "[compare] expected outcomes at the same seeds, got {} and {}",
          section[0].size(), s.size());
  std::vector<std::pair<double, double>> found;  // variance, degrees
  std::vector<bool> counts(section.size());
  for (const auto& [a, b] : all_pairs(section.size()))
    // Pairs with a trial that did not train are left out, because their variance does not describe other pairs.
    if (const Pair pair = pair_of(section[a], section[b]); pair.difference.n >= 2 && pair.all_trained()) {
      found.emplace_back(pair.difference.variance(), static_cast<double>(pair.difference.n - 1));
      counts[a] = counts[b] = true;
    }
  if (found.empty()) return;
  const auto varying = std::ranges::count(counts, true);
  // In a section with enough seeds, one series may have trials that did not train.
  series = section[0].size() >= fewest_alone && varying + 1 == std::ssize(section) ? varying + 1 : varying;
  std::ranges::sort(found);
  smallest = 1e-5 * found[found.size() / 2].first;
  // Only the larger half counts: series that stay at chance have almost no variance, although other series vary.
  double all = 0, degrees_of_all = 0;
  for (std::size_t i = found.size() / 2; i < found.size(); ++i)
    pooled_variance += found[i].second * found[i].first, all += found[i].second;
  pooled_variance /= all;
  for (const auto& [of_pair, d] : found) degrees_of_all += d;
  // The degrees of freedom of a table of series and seeds.
  pooled_degrees = static_cast<double>(varying - 1) * degrees_of_all / static_cast<double>(found.size());
  if (found.size() < 3 || smallest == 0) return;
  // Smyth 2004, section 6.2: the moments of e = log s^2 - digamma(d/2) + log(d/2).
  const auto count = static_cast<double>(found.size());
  std::vector<double> e;
  double expected = 0;
  for (const auto& [of_pair, d] : found) {
    e.push_back(std::log(std::max(of_pair, smallest)) - digamma(d / 2) + std::log(d / 2));
    expected += trigamma(d / 2) / count;
  }
  const double mean = std::accumulate(e.begin(), e.end(), 0.0) / count;
  double spread = -expected;
  for (const double x : e) spread += (x - mean) * (x - mean) / (count - 1);
  if (spread <= 0) {
    degrees = infinity;
    variance = std::exp(mean);
  } else {
    const double half = inverse_trigamma(spread);
    degrees = 2 * half;
    variance = std::exp(mean + digamma(half) - std::log(half));
  }
}

std::vector<std::pair<std::size_t, std::size_t>> against_first(std::size_t series) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 1; i < series; ++i) pairs.emplace_back(i, 0);
  return pairs;
}

std::vector<std::pair<std::size_t, std::size_t>> all_pairs(std::size_t series) {
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < series; ++i)
    for (std::size_t j = i + 1; j < series; ++j) pairs.emplace_back(i, j);
  return pairs;
}

std::vector<Difference> judge_family(const std::vector<Contrast>& family, double level) {
  std::vector<Losses> all;
  std::vector<Hypothesis> losses, training;
  for (const Contrast& c : family) {
    check(c.first.size() == c.second.size(), "[compare] expected outcomes at the same seeds, got {} and {}",
          c.first.size(), c.second.size());
    const Pair pair = pair_of(c.first, c.second, c.margin, c.losses);
    const std::size_t index = all.size();
    losses.push_back({index, all.emplace_back(losses_of(c, pair, level)).p});
    if (c.training && pair.only_first + pair.only_second >= fewest_alone)
      training.push_back({index, sign_test(pair.only_first, pair.only_second)});
  }
  holm(training, level, [&](std::size_t index, double, bool decided) {
    Difference& d = all[index].difference;
    if (decided)
      d.training =
          d.trained_first > d.trained_second ? Difference::Training::more_often : Difference::Training::less_often;
  });
  Bounds bound;
  holm(losses, of_losses * level, [&](std::size_t index, double at, bool decided) {
    auto& [d, e, p] = all[index];
    double half = d.trained == 0 ? std::numeric_limits<double>::quiet_NaN() : infinity;
    if (d.trained >= fewest_pairs) {
      half = bound(e.count == 1 ? at : level, e.degrees[0]) * e.error[0];
      for (int i = 1; i < e.count; ++i) half = std::max(half, bound(at, e.degrees[i]) * e.error[i]);
    }
    d.low = d.mean - half, d.high = d.mean + half, d.level = at;
    if (decided) d.order = d.mean < 0 ? Difference::Order::lower : Difference::Order::higher;
    if (d.low <= 0 && d.high >= 0) d.doubt = Difference::Doubt::none;  // the interval tells why
    if (d.same && d.deviation == 0 && d.mean != 0) d.doubt = Difference::Doubt::same;
  });
  std::vector<Difference> differences;
  for (const Losses& l : all) differences.push_back(l.difference);
  return differences;
}

bool is_decided(const Difference& d) {
  return d.order != Difference::Order::undecided || d.training != Difference::Training::undecided;
}

std::string verdict_words(const Difference& d) {
  std::string words = d.order == Difference::Order::lower    ? "lower"
                      : d.order == Difference::Order::higher ? "higher"
                                                             : "";
  if (d.training != Difference::Training::undecided)
    words += (words.empty() ? "" : ", ") +
             std::string(d.training == Difference::Training::less_often ? "trains less often" : "trains more often");
  return words.empty() ? "no verdict" : words;
}

std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family, double level) {
  const Variances section(series);
  std::vector<Contrast> contrasts;
  for (const auto& [a, b] : family) contrasts.push_back({.first = series[a], .second = series[b], .section = section});
  return judge_family(contrasts, level);
}

Difference negated(Difference d) {
  using enum Difference::Order;
  d.order = d.order == lower ? higher : d.order == higher ? lower : d.order;
  d.mean = -d.mean;
  d.low = -std::exchange(d.high, -d.low);
  return d;
}

std::int64_t pairs_needed(const Difference& d) {
  const bool by_losses = d.trained >= 2;
  const std::int64_t only_first = d.trained_first - d.trained, only_second = d.trained_second - d.trained;
  const auto decides = [&](std::int64_t n) {
    if (by_losses)
      return std::abs(d.mean) > student_t_quantile(1 - d.level / 2, static_cast<double>(n - 1)) * d.deviation /
                                    std::sqrt(static_cast<double>(n));
    const auto share = [&](std::int64_t part) {
      return std::llround(static_cast<double>(n * part) / static_cast<double>(d.n));
    };
    return sign_test(share(only_first), share(only_second)) <= d.level / of_losses;
  };
  const bool may = by_losses ? d.deviation > 0 && d.mean != 0 : only_first != only_second;
  if (!may || !decides(most_needed)) return 0;
  // The answer lies between `low` and `high`. For a sign test the answer is approximate, because shares of pairs are
  // rounded.
  std::int64_t low = by_losses ? std::max(d.trained, d.fewest - 1) : std::max(d.n, fewest_alone - 1),
               high = most_needed;
  while (high - low > 1) (decides((low + high) / 2) ? high : low) = (low + high) / 2;
  return high;
}

std::string to_string(Difference::Doubt doubt) {
  switch (doubt) {
    case Difference::Doubt::few_pairs:
      return "fewer than four methods trained at all seeds, so six pairs are needed";
    case Difference::Doubt::same:
      return "the difference is the same in every pair, so the pairs do not tell how much it varies";
    case Difference::Doubt::spread:
      return "the two spreads differ too much to trust a mean";
    case Difference::Doubt::signs:
      return "the signs of the differences do not agree enough";
    case Difference::Doubt::not_all:
      return "a margin needs six seeds, all of them trained on both sides";
    case Difference::Doubt::resolution:
      return "below the resolution of the measure";
    case Difference::Doubt::too_wide:
      return "the margin is too wide: the control against itself under other draws is within it in nine of ten studies";
    case Difference::Doubt::none:
      break;
  }
  return "";
}

std::string describe(const Difference& d) {
  if (d.n == 0) return "no pairs";
  std::string text;
  if (d.trained == 0) {
    text = "no seed trained with both";
  } else {
    text = d.same && d.mean == 0 ? "equal in every pair"
                                 : fmt::format("{} by {:.3g}{}", d.mean < 0 ? "lower" : "higher", std::abs(d.mean),
                                               d.same ? " in every pair" : "");
    if (!d.all_trained()) text += " where both train";
    const double sign = d.mean < 0 ? -1 : 1;
    text += d.trained < fewest_pairs
                ? fmt::format(" in {}", d.trained == 1 ? "one pair" : "two pairs")
                : fmt::format(", {:.4g} % interval {:.3g} to {:.3g}, {} pairs", 100 * (1 - d.level),
                              std::min(sign * d.low, sign * d.high), std::max(sign * d.low, sign * d.high), d.trained);
  }
  if (d.training != Difference::Training::undecided)
    text += d.training == Difference::Training::less_often ? "; trains less often" : "; trains more often";
  text += fmt::format("; {} of {} and {} of {} seeds trained", d.trained_first, d.n, d.trained_second, d.n);
  if (d.all_trained() && d.n >= fewest_pairs)
    text += fmt::format(", up to {:.0f} % may still fail", 100 * may_fail(d.n, d.n));
  if (d.same && d.deviation > 0) text += "; the other pairs of the section give its error";
  if (d.doubt != Difference::Doubt::none) text += "; undecided: " + to_string(d.doubt);
  return text;
}

}  // namespace plumb::lab
