#include "experiments/lab/stats/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace plumb::lab {

std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials) {
  std::vector<TrialGroup> groups;
  std::map<std::tuple<std::string, std::int64_t, double>, std::size_t> places;
  for (const TrialResult& a : trials) {
    const auto [place, is_new] = places.try_emplace({a.method, a.depth, a.lr}, groups.size());
    if (is_new) groups.push_back({.method = a.method, .depth = a.depth, .lr = a.lr});
    TrialGroup& g = groups[place->second];
    g.trials.push_back(a);
    ++(a.status == Status::ok         ? g.ok
       : a.status == Status::diverged ? g.diverged
       : a.status == Status::hopeless ? g.hopeless
                                      : g.failed);
  }
  for (TrialGroup& g : groups) {
    const auto over_ok = [&](std::optional<double> TrialResult::*field) {
      std::vector<double> values;
      for (const TrialResult& a : g.trials)
        if (a.status == Status::ok && a.*field) values.push_back(*(a.*field));
      return summarize(values);
    };
    g.train_loss = over_ok(&TrialResult::train_loss);
    g.val_loss = over_ok(&TrialResult::val_loss);
    g.val_accuracy = over_ok(&TrialResult::val_accuracy);
    for (std::size_t i = 0; i < g.trials.front().further.size(); ++i) {
      std::vector<double> values;
      for (const TrialResult& a : g.trials)
        if (a.status == Status::ok) values.push_back(a.further[i]);
      g.further.push_back(summarize(values));
    }
  }
  return groups;
}

Survival survival(const TrialGroup& group) {
  constexpr std::int64_t beyond = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> times;
  for (const TrialResult& a : group.trials) {
    if (a.status == Status::failed) continue;
    // One that was given up counts as lost when it was: so do verdicts.
    times.push_back(a.status == Status::ok ? beyond : a.diverged_at.value_or(a.steps));
  }
  std::ranges::sort(times);
  Survival s{.n = static_cast<std::int64_t>(times.size())};
  if (times.empty()) return s;
  const auto at = [&](std::size_t i) { return times[i] == beyond ? std::nullopt : std::optional(times[i]); };
  // The first time by which half are gone (Kaplan and Meier's estimate, where nothing is lost on the way).
  s.median = at((times.size() - 1) / 2);
  // The k-th smallest and the k-th largest hold the median with probability 1 - 2 P(Bin(n, 1/2) < k): the largest k
  // that leaves 95 %.
  double tail = 0, term = std::pow(0.5, static_cast<double>(s.n));
  std::size_t k = 0;
  for (std::size_t i = 0; tail + term <= 0.025 && i < times.size(); ++i, ++k) {
    tail += term;
    term *= static_cast<double>(times.size() - i) / static_cast<double>(i + 1);
  }
  s.has_interval = k > 0 && at(k - 1);
  if (s.has_interval) s.low = *at(k - 1), s.high = at(times.size() - k);
  return s;
}

std::string to_string(const Survival& s, std::int64_t steps) {
  std::string text = s.median ? fmt::format("median survival {} steps", *s.median)
                              : fmt::format("median survival beyond {} steps", steps);
  text += fmt::format(", n = {}", s.n);
  if (s.n < 6) return text + " (no interval below 6)";
  if (!s.has_interval) return text + ", and so is its 95 % interval";
  return text + (s.high ? fmt::format(" (95 % interval {} to {})", s.low, *s.high)
                        : fmt::format(" (95 % interval {} to beyond {})", s.low, steps));
}

}  // namespace plumb::lab
