#include "experiments/lab/report/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::lab {

std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low,
                               double high) {
  const double room = std::max(high - low, 0.05 * std::max(std::abs(low), std::abs(high)));
  std::vector<PlotRule> rules;
  for (const Reference& r : references)
    if (r.value == value && low - room <= r.level && r.level <= high + room)
      rules.push_back({.y = r.level, .name = r.name});
  return rules;
}

std::string known_levels(const StudyResults& results) {
  const std::vector<Reference>& references = results.judging.references;
  if (std::ranges::all_of(references, &Reference::chance)) return "";
  const std::vector<TrialGroup> groups = results.groups();
  std::string levels, last;  // the last name in `levels`
  std::string baseline;      // the name of the baseline, if a trial was compared with one
  bool any_better = false;   // whether a trial was better than the baseline
  for (const Reference& r : references) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const TrialGroup& group : groups)
      if (const Summary s = group.summary(r.value); s.n > 0) low = std::min(low, s.mean), high = std::max(high, s.mean);
    if (low > high) continue;
    const std::string name = r.chance ? "chance" : r.name,
                      level = describe_level(unit_of(results.judging.measures, r.value), r.level);
    levels += (name == last ? ", " : (levels.empty() ? "" : "), ") + name + " (") + r.value + " " + level;
    last = name;
    // A lower training loss does not mean that a trial has learned more.
    if (!r.baseline || r.value == "train_loss") continue;
    baseline = r.name;
    any_better = any_better || (r.better == Better::higher ? high > r.level : low < r.level);
  }
  if (levels.empty()) return "";
  return fmt::format("Known levels: {}).{}", levels,
                     baseline.empty() || any_better ? "" : fmt::format(" No trial is better than {}.", baseline));
}

}  // namespace plumb::lab
