#include "experiments/common/claims.h"

#include <algorithm>
#include <cmath>

#include "experiments/common/statistics.h"

namespace plumb::lab {

Comparison lower(std::string value, Point a, Point b) { return {std::move(value), false, std::move(a), std::move(b)}; }
Comparison higher(std::string value, Point a, Point b) { return {std::move(value), true, std::move(a), std::move(b)}; }

std::string_view to_string(Verdict verdict) { return verdict == Verdict::agree ? "agree" : verdict == Verdict::disagree ? "disagree" : "undecided"; }

ClaimResult judge(const Comparison& c, const std::vector<Record>& records) {
  std::vector<double> differences;  // of pairs that both trained
  int only_a = 0, only_b = 0, neither = 0;
  for (const Record& a : records) {
    if (!is_finished(a.status) || !a.point.contains(c.a) || !a.point.contains(c.where)) continue;
    Point other = a.point;
    for (const auto& [axis, value] : c.b.entries()) other.set(axis, value);
    const auto b = std::ranges::find_if(records, [&](const Record& r) { return is_finished(r.status) && r.point == other; });
    if (b == records.end()) continue;
    if (a.status == Status::ok && b->status == Status::ok)
      differences.push_back(a.value(c.value) - b->value(c.value));
    else
      ++(a.status == Status::ok ? only_a : b->status == Status::ok ? only_b : neither);
  }
  std::erase_if(differences, [](double d) { return !std::isfinite(d); });
  const auto pairs = static_cast<int>(differences.size()) + only_a + only_b + neither;
  if (pairs == 0) return {Verdict::undecided, "no two arms to compare"};
  const std::string diverged =
      only_a + only_b + neither == 0
          ? ""
          : fmt::format("; of {} pairs {} diverged in the second alone, {} in the first, {} in both", pairs, only_a, only_b, neither);
  if (differences.size() < 2) {
    if (only_a >= 2 && only_b == 0 && neither == 0 && differences.empty())
      return {Verdict::agree, fmt::format("all {} arms of the second diverged", pairs)};
    if (only_b >= 2 && only_a == 0 && neither == 0 && differences.empty())
      return {Verdict::disagree, fmt::format("all {} arms of the first diverged", pairs)};
    return {Verdict::undecided, fmt::format("{} pair{}: no interval{}", pairs, pairs == 1 ? "" : "s", diverged)};
  }
  const Summary s = summarize(differences);
  const std::string why =
      fmt::format("{} by {:.3g} ± {:.2g} over {} pairs{}", s.mean < 0 ? "lower" : "higher", std::abs(s.mean), *s.half_width, s.n, diverged);
  const bool lower = s.high()<0, higher = s.low()> 0;
  if ((c.higher ? higher : lower) && only_b == 0) return {Verdict::agree, why};
  if ((c.higher ? lower : higher) && only_a == 0) return {Verdict::disagree, why};
  return {Verdict::undecided, why};
}

}  // namespace plumb::lab
