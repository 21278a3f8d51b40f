#include "experiments/lab/stats/groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace plumb::lab {

std::int64_t TrialGroup::count(Status status) const { return std::ranges::count(trials, status, &TrialResult::status); }

std::vector<const TrialResult*> TrialGroup::averaged() const {
  std::vector<const TrialResult*> ok, trained;
  for (const TrialResult* a : trials) {
    if (a->status != Status::ok) continue;
    ok.push_back(a);
    if (a->trained) trained.push_back(a);
  }
  return trained.empty() ? ok : trained;
}

Summary TrialGroup::summary(std::string_view value) const {
  std::vector<double> values;
  for (const TrialResult* a : averaged()) values.push_back(a->value(value).value_or(unknown));
  return summarize(values);
}

std::vector<TrialGroup> group_trials(const std::vector<TrialResult>& trials, std::string_view across) {
  std::vector<TrialGroup> groups;
  for (const TrialResult& a : trials) {
    const Point shared = a.point.without("seed").without(across);
    const auto group = std::ranges::find(groups, shared, &TrialGroup::point);
    (group == groups.end() ? groups.emplace_back(TrialGroup{.point = shared, .method = a.method}) : *group)
        .trials.push_back(&a);
  }
  return groups;
}

void add_neighbours(std::vector<TrialGroup>& groups, const std::vector<TrialResult>& neighbours) {
  for (const TrialResult& a : neighbours)
    for (TrialGroup& group : groups)
      if (cell_of(group.point) == cell_of(a.point)) group.neighbours[a.point.get<int>(neighbour_steps)].push_back(&a);
}

std::string outcome(const TrialGroup& g, const char* not_trained) {
  std::string text;
  const auto add = [&](std::int64_t n, const char* words) {
    if (n == 0) return false;
    if (!text.empty()) text += "; ";
    text += g.trials.size() == 1 ? words : fmt::format("{} of {} {}", n, g.trials.size(), words);
    return true;
  };
  add(std::ranges::count_if(g.trials, [](const TrialResult* a) { return a->status == Status::ok && !a->trained; }),
      not_trained);
  for (const auto& [status, words] : {std::pair(Status::diverged, "diverged"),
                                      {Status::hopeless, "stopped as hopeless"},
                                      {Status::failed, "failed"}}) {
    if (!add(g.count(status), words) || status != Status::diverged) continue;
    std::vector<std::int64_t> steps;
    for (const TrialResult* a : g.trials)
      if (a->status == Status::diverged && a->diverged_at()) steps.push_back(*a->diverged_at());
    if (steps.empty()) continue;
    const auto [first, last] = std::ranges::minmax(steps);
    text += first == last ? fmt::format(" at step {}", first) : fmt::format(" at steps {} to {}", first, last);
  }
  return text.empty() ? "ok" : text;
}

}  // namespace plumb::lab
