#include "experiments/lab/stats/bets.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace plumb::lab {
namespace {

constexpr double effect = 1.5;  // deviation of the effect in the t mixture

// The capital of bets on wins.
class Bets {
 public:
  void win() {
    for (std::size_t i = 0; i < chances.size(); ++i) capital_[i] *= 2 * chances[i];
  }
  void lose() {
    for (std::size_t i = 0; i < chances.size(); ++i) capital_[i] *= 2 - 2 * chances[i];
  }
  double mean() const { return std::accumulate(capital_.begin(), capital_.end(), 0.0) / std::size(chances); }
  static constexpr std::array chances{.6, .7, .8, .9, .97};

 private:
  std::array<double, std::size(chances)> capital_ = {1, 1, 1, 1, 1};
};

struct SignBets {
  Bets on_wins = {}, on_losses = {};
  void win() { on_wins.win(), on_losses.lose(); }
  void lose() { on_wins.lose(), on_losses.win(); }
  double evidence() const { return (on_wins.mean() + on_losses.mean()) / 2; }
};

// The t mixture, difference by difference (Welford 1962).
class TMixture {
 public:
  void add(double difference) {
    const double off = difference - mean_;
    mean_ += off / ++n_;
    squares_ += off * (difference - mean_);
  }
  double mean() const { return mean_; }
  double evidence() const {
    const double of_mean = n_ * mean_ * mean_, g = 1 + effect * effect * n_;
    if (n_ < 2 || squares_ + of_mean == 0) return 1;
    // t^2 / v is of_mean / squares_. Multiplied by squares_, the ratio has its limit g if all differences are equal.
    return std::pow((squares_ + of_mean) / (squares_ + of_mean / g), n_ / 2) / std::sqrt(g);
  }

 private:
  double n_ = 0, mean_ = 0, squares_ = 0;
};

// a - b - margin. A difference that only rounding separates from 0 is 0: accuracies of two digits differ by 0.01 or
// hardly more. The result is NaN for two failed trials.
double difference_of(double a, double b, double margin) {
  const double d = a - b - margin;
  return std::isfinite(d) && std::abs(d) <= 1e-12 * std::max({std::abs(a), std::abs(b), std::abs(margin)}) ? 0 : d;
}

void check_lengths(const Outcomes& first, const Outcomes& second) {
  check(first.size() == second.size(), "[duel] expected outcomes at the same seeds, got {} and {}", first.size(),
        second.size());
}

bool is_no_bet(double a, double b) { return std::min(a, b) == -std::numeric_limits<double>::infinity(); }

}  // namespace

double bets_on_wins(std::int64_t wins, std::int64_t losses) {
  Bets bets;
  for (std::int64_t i = 0; i < wins; ++i) bets.win();
  for (std::int64_t i = 0; i < losses; ++i) bets.lose();
  return bets.mean();
}

double sign_evidence(std::int64_t wins, std::int64_t losses) {
  return (bets_on_wins(wins, losses) + bets_on_wins(losses, wins)) / 2;
}

double predicted_bets(std::int64_t wins, std::int64_t bets, double needs) {
  const double chance = (static_cast<double>(wins) + 0.5) / (static_cast<double>(bets) + 1);
  double growth = 0;
  for (const double bet : Bets::chances)
    growth = std::max(growth, chance * std::log(2 * bet) + (1 - chance) * std::log(2 - 2 * bet));
  return std::log(needs) / growth;
}

double t_evidence(const std::vector<double>& differences) {
  TMixture mixture;
  for (const double d : differences) mixture.add(d);
  return mixture.evidence();
}

Duel duel(const Outcomes& first, const Outcomes& second, double margin, Tie tie) {
  check_lengths(first, second);
  Duel d;
  SignBets signs;
  TMixture mixture;
  double handed_over = 0;  // the capital of the t mixture for each unit of the sign bets, after the first failure
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double a = first[i], b = second[i];
    if (std::isnan(a) || std::isnan(b)) break;
    ++d.seeds;
    if (is_no_bet(a, b)) continue;
    const bool failed = std::isinf(a) || std::isinf(b);
    d.failed_first += std::isinf(a), d.failed_second += std::isinf(b), d.failed_both += std::isinf(a) && std::isinf(b);
    if (failed && handed_over == 0) handed_over = mixture.evidence() / signs.evidence();
    const double difference = difference_of(a, b, margin);
    if (difference < 0 || (difference == 0 && tie == Tie::win)) ++d.wins, signs.win();
    if (difference > 0 || (difference == 0 && tie == Tie::loss)) ++d.losses, signs.lose();
    if (!failed) d.differences.push_back(a - b), mixture.add(difference);
    const double of_differences = handed_over > 0 ? handed_over * signs.evidence() : mixture.evidence();
    d.evidence = (signs.evidence() + of_differences) / 2;
    const bool pairs = !d.differences.empty();
    if (d.wins > d.losses && (!pairs || mixture.mean() < 0)) d.first_ahead = std::max(d.first_ahead, d.evidence);
    if (d.losses > d.wins && (!pairs || mixture.mean() > 0)) d.second_ahead = std::max(d.second_ahead, d.evidence);
  }
  return d;
}

double equality(const Outcomes& first, const Outcomes& second, double d) {
  check_lengths(first, second);
  Bets below, above;  // on first - second < d, and on first - second > -d
  double most_below = 1, most_above = 1;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double a = first[i], b = second[i];
    if (std::isnan(a) || std::isnan(b)) break;
    if (is_no_bet(a, b) || (std::isinf(a) && std::isinf(b))) continue;
    difference_of(a, b, d) < 0 ? below.win() : below.lose();
    difference_of(a, b, -d) > 0 ? above.win() : above.lose();
    most_below = std::max(most_below, below.mean()), most_above = std::max(most_above, above.mean());
  }
  return std::min(most_below, most_above);
}

std::vector<Rejection> weighted_holm(const std::vector<double>& evidence, const std::vector<double>& weights,
                                     double level) {
  std::vector<std::size_t> order(evidence.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return evidence[i] * weights[i]; });
  double open = std::accumulate(weights.begin(), weights.end(), 0.0);
  bool stopped = false;
  std::vector<Rejection> results(evidence.size());
  for (const std::size_t i : order) {
    results[i].needs = open / (level * weights[i]);
    results[i].rejected = !stopped && evidence[i] >= results[i].needs;
    if (results[i].rejected)
      open -= weights[i];
    else
      stopped = true;
  }
  return results;
}

}  // namespace plumb::lab
