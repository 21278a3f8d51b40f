#include "experiments/lab/stats/reference.h"

#include <fmt/format.h>

namespace plumb::lab {

std::string describe_level(Unit unit, double level) {
  return unit == Unit::fraction ? fmt::format("{:.3g} %", 100 * level) : fmt::format("{:.4g}", level);
}

std::vector<Reference> chance_references(const std::vector<Measure>& measures) {
  std::vector<Reference> references;
  for (const Measure& m : measures)
    if (m.chance)
      references.push_back({m.name, *m.chance,
                            "chance, " + (m.chance_text.empty() ? describe_level(m.unit, *m.chance) : m.chance_text),
                            true, m.better});
  return references;
}

std::optional<double> chance_of(const std::vector<Reference>& references, std::string_view value) {
  for (const Reference& r : references)
    if (r.chance && r.value == value) return r.level;
  return std::nullopt;
}

}  // namespace plumb::lab
