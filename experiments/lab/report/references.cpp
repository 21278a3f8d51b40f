#include "experiments/lab/report/references.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/train/linear_model.h"

namespace plumb::lab {

bool is_accuracy(std::string_view value) { return value == "accuracy" || value.ends_with("_accuracy"); }

std::string describe_level(std::string_view value, double level) {
  return is_accuracy(value) ? fmt::format("{:.3g} %", 100 * level) : fmt::format("{:.4g}", level);
}

std::vector<Reference> chance_references(std::int64_t classes) {
  if (classes < 2) return {};
  const double loss = chance_loss(classes), accuracy = 1 / static_cast<double>(classes);
  std::vector<Reference> references;
  for (const char* value : {"train_loss", "val_loss"}) references.push_back({value, loss, fmt::format("chance, ln {} = {:.3f}", classes, loss)});
  references.push_back({"val_accuracy", accuracy, fmt::format("chance, {:.3g} %", 100 * accuracy)});
  return references;
}

std::vector<PlotRule> rules_of(const std::vector<Reference>& references, std::string_view value, double low, double high) {
  const double room = std::max(high - low, 0.05 * std::max(std::abs(low), std::abs(high)));
  std::vector<PlotRule> rules;
  for (const Reference& r : references)
    if (r.value == value && low - room <= r.level && r.level <= high + room) rules.push_back({.y = r.level, .name = r.name});
  return rules;
}

Section references_section(const StudyResults& results) {
  using enum TextTable::Align;
  Section section{.title = "Beside what is known",
                  .caption = "Means over the seeds that ended ok, of the arms that have the lowest and the highest."};
  section.table.column("value", left);
  section.table.column("reference", left);
  section.table.column("level", right);
  section.table.column("lowest here", right);
  section.table.column("highest here", right);
  for (const Reference& r : results.judging.references) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const StudyResults::Group& group : results.groups())
      if (const Summary s = group.over_ok(r.value); s.n > 0) low = std::min(low, s.mean), high = std::max(high, s.mean);
    if (low > high) continue;
    section.table.row({r.value, r.name, describe_level(r.value, r.level), describe_level(r.value, low), describe_level(r.value, high)});
    const bool no_better = is_accuracy(r.value) ? high <= r.level : low >= r.level;
    if (no_better && r.name == linear_model_name && r.value != "train_loss")
      section.title = fmt::format("Beside what is known: no arm is better than {}", linear_model_name);
  }
  return section;
}

}  // namespace plumb::lab
