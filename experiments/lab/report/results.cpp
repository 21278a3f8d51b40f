#include "experiments/lab/report/results.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "experiments/lab/stats/conditions.h"

namespace plumb::lab {

std::pair<std::vector<std::string>, std::size_t> shown_values(const StudyResults& r) {
  const auto hidden = [](const std::string& name) { return name == "diverged_at" || is_time(name); };
  std::vector<std::string> measured = r.columns;
  std::erase_if(measured, hidden);
  const std::size_t asked = measured.size();
  for (const std::string& name : measured_names(r.records))
    if (!hidden(name) && std::ranges::find(measured, name) == measured.end()) measured.push_back(name);
  const std::size_t all = measured.size();
  measured.resize(std::min(all, asked > 0 ? asked : shown_unasked));
  return {measured, all - measured.size()};
}

namespace {

class MethodNames {
 public:
  explicit MethodNames(const StudyResults& r) : study_(r.name) {
    for (const Record& record : r.records) {
      const Point method = method_of(record.point);
      for (const auto& [axis, value] : method.entries()) {
        const auto known = std::ranges::find(first_, axis, &Point::Entry::first);
        if (known == first_.end())
          first_.emplace_back(axis, value);
        else if (!same(known->second, value) && std::ranges::find(varying_, axis) == varying_.end())
          varying_.push_back(axis);
      }
    }
  }
  std::string operator()(const Point& point) const {
    Point rest = method_of(point);
    if (!varying_.empty())
      for (const auto& [axis, value] : point.entries())
        if (std::ranges::find(varying_, axis) == varying_.end()) rest = rest.without(axis);
    return rest.entries().empty() ? study_ : rest.label();
  }

 private:
  static Point method_of(const Point& point) {
    const Point rest = point.without("seed").without("lr");
    const AxisValue* depth = point.find("depth");
    return depth && std::holds_alternative<std::int64_t>(*depth) ? rest.without("depth") : rest;
  }

  std::string study_;
  std::vector<Point::Entry> first_;
  std::vector<std::string> varying_;
};

}  // namespace

std::vector<std::string> further_columns(const StudyResults& r) {
  std::vector<std::string> names = shown_values(r).first;
  std::erase_if(names, [&](const std::string& name) { return find_measure(r.judging.measures, name); });
  return names;
}

std::string series_name(const StudyResults& r) {
  std::vector<std::string> series = r.axes;
  std::erase_if(series, [](const std::string& axis) { return axis == "depth" || axis == "lr" || axis == "seed"; });
  return series.size() == 1 ? series.front() : "trial";
}

std::string method_name(const StudyResults& results, const Point& point) { return MethodNames(results)(point); }

namespace {

std::vector<TrialResult> results_of_trials(const StudyResults& r, const std::vector<Record>& records) {
  const MethodNames namer(r);
  std::vector<TrialResult> trials;
  for (const Record& record : records) {
    trials.push_back({.method = namer(record.point),
                      .point = record.point,
                      .status = record.status,
                      .steps = record.steps,
                      .seconds = record.seconds,
                      .values = record.values});
    trials.back().trained = has_trained(trials.back(), r.judging.chance.loss);
  }
  return trials;
}

}  // namespace

std::vector<TrialResult> trial_results(const StudyResults& r) { return results_of_trials(r, r.records); }

void judge_all(StudyResults& r, const std::vector<Claim>& claims, const std::vector<Point>& named) {
  r.trials = trial_results(r);
  if (r.judging.off)  // studies that judge nothing have their own rule for networks that train
    for (TrialResult& a : r.trials) a.trained = true;
  std::set<std::uint64_t> seeds;
  for (const Point& p : named) seeds.insert(static_cast<std::uint64_t>(p.get<std::int64_t>("seed")));
  r.judging.seeds.assign(seeds.begin(), seeds.end());
  const std::vector<TrialResult> neighbours = results_of_trials(r, r.neighbours);
  std::vector<TrialGroup> groups = group_trials(r.trials);
  add_neighbours(groups, neighbours);
  std::vector<Claim> about_named;  // claims about trials of this call
  for (const Claim& claim : claims) {
    const Comparison& c = claim.comparison;
    const auto any_at = [&](const Point& side) {
      return std::ranges::any_of(named, [&](const Point& p) { return p.contains(side) && p.contains(c.where); });
    };
    if (any_at(c.a) && any_at(c.b)) about_named.push_back(claim);
  }
  r.claims = judge_claims(about_named, groups, r.judging);
  std::vector<ClaimedPair> pairs;
  for (std::size_t i = 0; i < about_named.size(); ++i)
    if (const Comparison& c = about_named[i].comparison;
        c.value == "train_loss" && !c.margin && !c.constant && !r.claims[i].post_hoc)
      for (const ClaimResult& a : r.claims[i].results)
        pairs.push_back({a.cell_first, a.cell_second, a.rate_first, a.rate_second,
                         c.higher ? negated(a.difference) : a.difference});
  r.conditions.clear();
  if (!r.judging.off && has_training_losses(r.trials)) r.conditions = conditions(groups, r.judging, pairs);
  const auto want = [&](const Difference& d, const Point& first, const Point& second) {
    const Point& cell = d.lost == Side::first ? first : second;
    for (const int step : d.wanted)
      if (std::ranges::find(r.wanted, WantedRate{cell, step}) == r.wanted.end()) r.wanted.push_back({cell, step});
  };
  r.wanted.clear();
  for (const JudgedClaim& claim : r.claims)
    for (const ClaimResult& result : claim.results) want(result.difference, result.cell_first, result.cell_second);
  for (const Condition& condition : r.conditions)
    for (const JudgedPair& pair : condition.against_control)
      want(pair.difference, condition.standings[pair.first].cell, condition.standings[pair.second].cell);
}

}  // namespace plumb::lab
