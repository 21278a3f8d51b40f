#include "experiments/lab/stats/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "experiments/lab/record/csv.h"

namespace plumb::lab {

Comparison lower(std::string value, Point a, Point b) { return {std::move(value), false, std::move(a), std::move(b)}; }
Comparison higher(std::string value, Point a, Point b) { return {std::move(value), true, std::move(a), std::move(b)}; }
Comparison not_higher(std::string value, Point a, Point b, double margin) {
  plumb::check(margin > 0 && std::isfinite(margin), "[claim] expected a margin above 0 for {}, got {}", value, margin);
  return {.value = std::move(value), .higher = false, .a = std::move(a), .b = std::move(b), .margin = margin};
}
Comparison not_lower(std::string value, Point a, Point b, double margin) {
  Comparison c = not_higher(std::move(value), std::move(a), std::move(b), margin);
  c.higher = true;
  return c;
}

Comparison Comparison::by_at_least(double amount) const {
  plumb::check(amount > 0 && std::isfinite(amount),
               "[claim] expected by_at_least() of an amount above 0 for {}, got {}", value, amount);
  plumb::check(!margin && !constant, "[claim] expected by_at_least() of lower() or higher() for {}, got it of {}",
               value, constant ? "above() or below(): change their constant instead" : "a comparison with a margin");
  Comparison c = *this;
  c.margin = -amount;
  return c;
}

Comparison above(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = true, .where = std::move(place), .constant = constant};
}
Comparison below(std::string value, double constant, Point place) {
  return {.value = std::move(value), .higher = false, .where = std::move(place), .constant = constant};
}

std::string_view to_string(Verdict verdict) {
  return verdict == Verdict::agree ? "agree" : verdict == Verdict::disagree ? "disagree" : "undecided";
}

ClaimResult judge(const Comparison& c, const std::vector<Record>& records) {
  const auto outcome = [&](const Record& r) {
    const double found = r.outcome(c.value);
    return c.higher && std::isfinite(found) ? -found : found;
  };
  // For each seed, the outcomes of its pairs on both sides. The mean over a side is infinite if a trial of that side
  // diverged.
  std::map<std::int64_t, std::array<std::vector<double>, 2>> by_seed;
  for (const Record& a : records) {
    if (a.status == Status::failed || !a.point.contains(c.a) || !a.point.contains(c.where)) continue;
    if (c.constant) {
      if (!std::isnan(outcome(a)))
        by_seed[a.seed()][0].push_back(outcome(a)),
            by_seed[a.seed()][1].push_back(c.higher ? -*c.constant : *c.constant);
      continue;
    }
    Point other = a.point;
    for (const auto& [axis, value] : c.b.entries()) other.set(axis, value);
    const auto b =
        std::ranges::find_if(records, [&](const Record& r) { return r.status != Status::failed && r.point == other; });
    if (b == records.end() || std::isnan(outcome(a)) || std::isnan(outcome(*b))) continue;
    by_seed[a.seed()][0].push_back(outcome(a)), by_seed[a.seed()][1].push_back(outcome(*b));
  }
  std::vector<Outcomes> series(2);
  for (const auto& [seed, outcomes] : by_seed)
    for (int side = 0; side < 2; ++side)
      series[side].push_back(std::accumulate(outcomes[side].begin(), outcomes[side].end(), 0.0) /
                             static_cast<double>(outcomes[side].size()));
  ClaimResult result{
      .difference = compare(series, {{0, 1}}).front(), .higher = c.higher, .margin = c.margin, .constant = c.constant};
  result.judged = result.difference;
  if (c.margin) {
    for (double& second : series[1]) second += *c.margin;
    result.judged = compare(series, {{0, 1}}).front();
  }
  const Difference::Order order = result.judged.order;
  if (order != Difference::Order::undecided)
    result.verdict = order == Difference::Order::lower ? Verdict::agree : Verdict::disagree;
  return result;
}

std::string ClaimResult::why() const {
  Difference d = difference;
  if (higher && !d.by_signs) d.mean = -d.mean, d.low = -std::exchange(d.high, -d.low);
  const std::int64_t needed = verdict == Verdict::undecided ? pairs_needed(judged) : 0;
  return describe(d) + (constant ? fmt::format(" with {:.3g}", *constant) : "") +
         (!margin       ? ""
          : *margin > 0 ? fmt::format("; margin {:.3g} {}", *margin, higher ? "lower" : "higher")
                        : fmt::format("; claimed at least {:.3g} {}", -*margin, higher ? "higher" : "lower")) +
         (needed > 0 ? fmt::format("; about {} pairs would decide", needed) : "");
}

std::string claims_csv(const std::vector<JudgedClaim>& claims) {
  CsvTable table({"claim", "source", "verdict", "difference", "low", "high", "margin", "n", "needed"});
  for (const auto& [text, source, result] : claims) {
    const Difference& d = result.difference;
    const double sign = result.higher ? -1 : 1;
    const std::int64_t needed = result.verdict == Verdict::undecided ? pairs_needed(result.judged) : d.n;
    table.cell(std::string_view(text))
        .cell(std::string_view(source))
        .cell(to_string(result.verdict))
        .cell(sign * d.mean);
    table.cell(result.higher ? -d.high : d.low)
        .cell(result.higher ? -d.low : d.high)
        .cell(sign * result.margin.value_or(unknown))
        .cell(d.n);
    table.cell(needed > 0 ? static_cast<double>(needed) : unknown).end_row();
  }
  return table.text();
}

}  // namespace plumb::lab
