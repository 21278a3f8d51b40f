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

Section references_section(const StudyResults& results) {
  using enum TextTable::Align;
  Section section{.title = "Known levels", .caption = "Lowest and highest mean in the table of results."};
  section.table.column("value", left);
  section.table.column("reference", left);
  section.table.column("level", right);
  section.table.column("lowest here", right);
  section.table.column("highest here", right);
  const std::vector<TrialGroup> groups = results.groups();
  std::string baseline;     // the name of the baseline, if a trial was compared with one
  bool any_better = false;  // whether a trial was better than the baseline
  for (const Reference& r : results.judging.references) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const TrialGroup& group : groups)
      if (const Summary s = group.summary(r.value); s.n > 0) low = std::min(low, s.mean), high = std::max(high, s.mean);
    if (low > high) continue;
    const Unit unit = unit_of(results.judging.measures, r.value);
    section.table.row(
        {r.value, r.name, describe_level(unit, r.level), describe_level(unit, low), describe_level(unit, high)});
    // A lower training loss does not mean that a trial has learned more.
    if (!r.baseline || r.value == "train_loss") continue;
    baseline = r.name;
    any_better = any_better || (r.better == Better::higher ? high > r.level : low < r.level);
  }
  if (!baseline.empty() && !any_better)
    section.title = fmt::format("Known levels: no trial is better than {}", baseline);
  return section;
}

}  // namespace plumb::lab
