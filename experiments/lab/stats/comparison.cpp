#include "experiments/lab/stats/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>

#include "core/error.h"
#include "experiments/lab/stats/distributions.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {
namespace {

constexpr double level = 0.05;
constexpr std::int64_t fewest_pairs = 3, most_needed = 1000;
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

// Statistics of the variances of all pairs of the series.
struct Prior {
  // The parameters of Smyth's scaled inverse chi-squared distribution. The parameters are unknown if `degrees` is 0.
  double degrees = 0, variance = 0;
  double pooled_degrees = 0, pooled_variance = 0;  // degrees and mean of the larger half of the variances
  double smallest = 0;                             // least variance that is used, because exact ties are no evidence
};

struct Pair {
  std::int64_t trained = 0;  // number of seeds at which neither trial diverged
  // Mean and variance of the differences at the seeds that `trained` counts. The mean is NaN if there is no such seed.
  // The variance is unbiased for two or more seeds.
  double mean = 0, variance = 0;
  std::int64_t better = 0, worse = 0, diverged_first = 0, diverged_second = 0, n = 0;
};

Pair pair_of(const Outcomes& a, const Outcomes& b) {
  Pair pair;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) || std::isnan(b[i])) continue;
    ++pair.n;
    if (a[i] != b[i]) ++(a[i] < b[i] ? pair.better : pair.worse);
    pair.diverged_first += std::isinf(a[i]), pair.diverged_second += std::isinf(b[i]);
    if (std::isinf(a[i]) || std::isinf(b[i])) continue;
    const double difference = a[i] - b[i], off = difference - pair.mean;  // Welford 1962
    pair.mean += off / static_cast<double>(++pair.trained);
    pair.variance += off * (difference - pair.mean);
  }
  if (pair.trained >= 2) pair.variance /= static_cast<double>(pair.trained - 1);
  if (pair.trained == 0) pair.mean = std::numeric_limits<double>::quiet_NaN();
  return pair;
}

Prior prior_of(const std::vector<Outcomes>& series) {
  std::vector<std::pair<double, double>> found;  // variance, degrees
  std::vector<bool> counts(series.size());
  for (const auto& [a, b] : all_pairs(series.size()))
    // Pairs with a divergence are left out: the sign test judges these pairs, and their variance does not describe
    // other pairs.
    if (const Pair pair = pair_of(series[a], series[b]);
        pair.trained >= 2 && pair.diverged_first + pair.diverged_second == 0) {
      found.emplace_back(pair.variance, static_cast<double>(pair.trained - 1));
      counts[a] = counts[b] = true;
    }
  Prior prior;
  if (found.empty()) return prior;
  std::ranges::sort(found);
  prior.smallest = 1e-5 * found[found.size() / 2].first;
  // Only the larger half counts: series that stay at chance have almost no variance, although other series vary.
  double all = 0, degrees_of_all = 0;
  for (std::size_t i = found.size() / 2; i < found.size(); ++i)
    prior.pooled_variance += found[i].second * found[i].first, all += found[i].second;
  prior.pooled_variance /= all;
  for (const auto& [variance, d] : found) degrees_of_all += d;
  const auto varying = static_cast<double>(std::ranges::count(counts, true));
  // The degrees of freedom of a table of series and seeds.
  prior.pooled_degrees = (varying - 1) * degrees_of_all / static_cast<double>(found.size());
  if (found.size() < 3 || prior.smallest == 0) return prior;
  // Smyth 2004, section 6.2: the moments of e = log s^2 - digamma(d/2) + log(d/2).
  const auto count = static_cast<double>(found.size());
  std::vector<double> e;
  double expected = 0;
  for (const auto& [variance, d] : found) {
    e.push_back(std::log(std::max(variance, prior.smallest)) - digamma(d / 2) + std::log(d / 2));
    expected += trigamma(d / 2) / count;
  }
  const double mean = std::accumulate(e.begin(), e.end(), 0.0) / count;
  double spread = -expected;
  for (const double x : e) spread += (x - mean) * (x - mean) / (count - 1);
  if (spread <= 0) {
    prior.degrees = infinity;
    prior.variance = std::exp(mean);
  } else {
    const double half = inverse_trigamma(spread);
    prior.degrees = 2 * half;
    prior.variance = std::exp(mean + digamma(half) - std::log(half));
  }
  return prior;
}

// The t statistic of a mean difference with each of the two variances (comparison.h).
struct Evidence {
  double t[2], degrees[2], error[2];

  // The larger of the p values for the two variances. The result is 1 if a standard error is 0, as for exact ties, or
  // if a t statistic is too small to be significant with any number of degrees of freedom.
  double p() const {
    if (std::min(std::abs(t[0]), std::abs(t[1])) < 1.95 || error[0] == 0 || error[1] == 0) return 1;
    return std::max(two_sided(t[0], degrees[0]), two_sided(t[1], degrees[1]));
  }
  double half_width(double at, Bounds& bound) const {
    return std::max(bound(at, degrees[0]) * error[0], bound(at, degrees[1]) * error[1]);
  }
};

Evidence evidence_of(const Pair& pair, const Prior& prior) {
  const auto n = static_cast<double>(pair.trained);
  const double own = std::max(pair.variance, prior.smallest), d = n - 1;
  const double moderated =
      std::max(own, std::isinf(prior.degrees) ? prior.variance
                                              : (prior.degrees * prior.variance + d * own) / (prior.degrees + d));
  Evidence e{};
  for (const auto& [i, variance, degrees] :
       {std::tuple(0, moderated, std::min(prior.degrees + d, prior.pooled_degrees)),
        {1, std::max(prior.pooled_variance, prior.smallest), prior.pooled_degrees}}) {
    e.error[i] = std::sqrt(variance / n);
    e.degrees[i] = degrees;
    e.t[i] = e.error[i] > 0 ? pair.mean / e.error[i] : pair.mean == 0 ? 0 : infinity;
  }
  return e;
}

}  // namespace

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

std::vector<Difference> compare(const std::vector<Outcomes>& series,
                                const std::vector<std::pair<std::size_t, std::size_t>>& family) {
  for (const Outcomes& s : series)
    check(s.size() == series[0].size(), "[compare] expected outcomes at the same seeds, got {} and {}",
          series[0].size(), s.size());
  const Prior prior = prior_of(series);
  struct Judged {
    std::size_t index;
    std::int64_t trained = 0;
    double p = 1;
    Evidence evidence{};
  };
  std::vector<Difference> differences;
  std::vector<Judged> judged;
  for (const auto& [first, second] : family) {
    const Pair pair = pair_of(series[first], series[second]);
    Judged j{.index = differences.size(), .trained = pair.trained};
    Difference d{.n = pair.n,
                 .mean = pair.mean,
                 .by_signs = pair.diverged_first + pair.diverged_second > 0,
                 .better = pair.better,
                 .worse = pair.worse,
                 .diverged_first = pair.diverged_first,
                 .diverged_second = pair.diverged_second};
    if (pair.trained >= 2) {
      j.evidence = evidence_of(pair, prior);
      d.deviation = std::max(j.evidence.error[0], j.evidence.error[1]) * std::sqrt(static_cast<double>(pair.trained));
    }
    if (d.by_signs)
      j.p = sign_test(d.better, d.worse);
    else if (pair.trained >= fewest_pairs)
      j.p = j.evidence.p();
    differences.push_back(d);
    judged.push_back(j);
  }
  std::ranges::stable_sort(judged, {}, &Judged::p);

  Bounds bound;
  double at = level;
  bool stopped = false;
  for (std::size_t k = 0; k < judged.size(); ++k) {
    const Judged& j = judged[k];
    Difference& d = differences[j.index];
    if (!stopped) at = level / static_cast<double>(judged.size() - k);
    stopped = stopped || j.p > at;
    const double half = d.by_signs || j.trained == 0 ? std::numeric_limits<double>::quiet_NaN()
                        : j.trained >= fewest_pairs  ? j.evidence.half_width(at, bound)
                                                     : infinity;
    d.low = d.mean - half, d.high = d.mean + half, d.level = at;
    if (!stopped)
      d.order = (d.by_signs ? d.better > d.worse : d.mean < 0) ? Difference::Order::lower : Difference::Order::higher;
  }
  return differences;
}

std::int64_t pairs_needed(const Difference& d) {
  const auto decides = [&](std::int64_t n) {
    if (!d.by_signs)
      return std::abs(d.mean) > student_t_quantile(1 - d.level / 2, static_cast<double>(n - 1)) * d.deviation /
                                    std::sqrt(static_cast<double>(n));
    const auto share = [&](std::int64_t part) {
      return std::llround(static_cast<double>(n * part) / static_cast<double>(d.n));
    };
    return sign_test(share(d.better), share(d.worse)) <= d.level;
  };
  const bool may = d.by_signs ? d.better != d.worse : d.deviation > 0 && d.mean != 0;
  if (!may || !decides(most_needed)) return 0;
  // The answer lies between `low` and `high`. For a sign test the answer is approximate, because shares of pairs are
  // rounded.
  std::int64_t low = std::max(d.n, fewest_pairs - 1), high = most_needed;
  while (high - low > 1) (decides((low + high) / 2) ? high : low) = (low + high) / 2;
  return high;
}

std::string describe(const Difference& d) {
  if (d.n == 0) return "no pairs";
  if (d.by_signs)
    return fmt::format("better in {} of {} pairs, worse in {}; the first diverged in {}, the second in {}", d.better,
                       d.n, d.worse, d.diverged_first, d.diverged_second);
  const std::string by = fmt::format("{} by {:.3g}", d.mean < 0 ? "lower" : "higher", std::abs(d.mean));
  if (d.n < fewest_pairs) return fmt::format("{} in {}", by, d.n == 1 ? "one pair" : "two pairs");
  const double sign = d.mean < 0 ? -1 : 1;
  return fmt::format("{}, {:.4g} % interval {:.3g} to {:.3g}, {} pairs", by, 100 * (1 - d.level),
                     std::min(sign * d.low, sign * d.high), std::max(sign * d.low, sign * d.high), d.n);
}

}  // namespace plumb::lab
