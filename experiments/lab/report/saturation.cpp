#include "experiments/lab/report/saturation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "experiments/lab/stats/groups.h"

namespace plumb::lab {

std::string saturation(const std::vector<TrialResult>& trials, const std::vector<Measure>& measures) {
  const Measure* score = score_of(measures);
  if (!score || score->unit != Unit::fraction) return "";
  std::map<std::int64_t, double> best;  // by depth
  for (const TrialGroup& group : group_trials(trials))
    if (const Summary s = group.summary(score->name); s.n > 0) {
      double& at_depth = best.try_emplace(group.depth(), 0).first->second;
      at_depth = std::max(at_depth, s.mean);
    }
  std::erase_if(best, [](const auto& entry) { return entry.second < saturated_score; });
  if (best.empty()) return "";
  std::vector<std::int64_t> depths;
  for (const auto& [depth, value] : best) depths.push_back(depth);
  const std::string where = depths == std::vector<std::int64_t>{0} ? ""
                            : depths.size() == 1                   ? fmt::format(" at depth {}", depths[0])
                                                 : fmt::format(" at depths {}", fmt::join(depths, ", "));
  return fmt::format(
      "Saturated{}: the best {} is at least {:.0f} %. This measure cannot rank the best methods there, and a lower "
      "loss only says that a method fitted the data earlier.",
      where, score->title, 100 * saturated_score);
}

}  // namespace plumb::lab
