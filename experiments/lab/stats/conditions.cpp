#include "experiments/lab/stats/conditions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace plumb::lab {
namespace {

Standing standing_of(const TrialGroup& g, const Judging& how) {
  Standing s{.method = g.method, .cell = cell_of(g.point)};
  std::vector<double> trained, finite, clean_trained, clean;
  for (const TrialResult* a : g.trials) {
    const double loss = a->outcome("train_loss");
    if (std::isnan(loss)) continue;  // the trial failed, or has no training loss
    ++s.seeds, s.trained += a->trained;
    s.diverged += a->status == Status::diverged, s.stopped += a->status == Status::hopeless;
    s.losses.push_back(loss);
    (a->trained ? trained : finite).push_back(loss);
    (a->trained ? clean_trained : clean).push_back(a->clean_loss(how.chance.loss));
  }
  s.loss = summarize(trained.empty() ? finite : trained);
  s.clean_mean = summarize(trained.empty() ? clean : clean_trained).mean;
  s.none_trained = s.trained == 0 && s.loss.n > 0;
  s.near_chance = s.none_trained && s.clean_mean >= near_chance_share * how.chance.loss;
  if (how.own_rates && g.lr() > 0) s.rate = g.lr();
  return s;
}

void take_verdict(std::vector<JudgedPair>& pairs, const std::vector<Standing>& standings, const ClaimedPair& claim) {
  for (auto& [first, second, difference] : pairs) {
    const Point &a = standings[first].cell, &b = standings[second].cell;
    if (a == claim.first && b == claim.second) difference = claim.difference;
    if (a == claim.second && b == claim.first) difference = turned(claim.difference);
  }
}

// The costs of a group at the judged seeds. A trial of another seed does not count.
Outcomes costs_of(const std::vector<const TrialResult*>& trials, const std::string& value, const Judging& how) {
  const bool training = is_about_training(how.measures, value);
  const double sign = better_of(how.measures, value) == Better::higher ? -1 : 1;
  Outcomes costs;
  for (const std::uint64_t seed : how.seeds) {
    const auto trial = std::ranges::find(trials, seed, [](const TrialResult* a) { return a->seed(); });
    if (trial == trials.end() || (*trial)->status == Status::failed)
      costs.push_back(unknown);
    else if (!(*trial)->trained)
      costs.push_back(training ? INFINITY : -INFINITY);
    else
      costs.push_back(sign * (*trial)->value(value).value_or(-sign * INFINITY));
  }
  return costs;
}

Arm arm_of(const TrialGroup& group, const std::string& value, const Judging& how, bool rates_matter) {
  Arm arm{.costs = costs_of(group.trials, value, how)};
  const RateChoice* choice = choice_for(how.rates, cell_of(group.point));
  arm.at_this_rate = !rates_matter || !how.own_rates || (choice && choice->unread);
  if (arm.at_this_rate) return arm;
  for (const auto& [step, trials] : group.neighbours) arm.neighbours[step] = costs_of(trials, value, how);
  if (choice) arm.beyond = choice->beyond;
  return arm;
}

}  // namespace

Contrast contrast_of(const TrialGroup& first, const TrialGroup* second, const std::string& value, const Judging& how,
                     double constant, bool rates_matter) {
  const bool trained_rates = rates_matter && second;
  Contrast c{.first = arm_of(first, value, how, trained_rates), .equal_within = equal_within(how.measures, value)};
  if (second) {
    c.second = arm_of(*second, value, how, trained_rates);
  } else {
    c.second.costs.assign(how.seeds.size(), better_of(how.measures, value) == Better::higher ? -constant : constant);
    c.equal_within.reset();
  }
  if (const Measure* measure = find_measure(how.measures, value)) c.resolution = measure->resolution;
  for (const TrialGroup* group : {&first, second})
    if (const RateChoice* choice = group ? choice_for(how.rates, cell_of(group->point)) : nullptr;
        choice && !choice->blind.empty() && rates_matter)
      c.obstacle = fmt::format("cannot be judged: no rate trains {}, which {}", group->method, choice->blind);
  if (how.old_trials)
    c.obstacle = how.own_rates ? "old trials: neighbours not trained" : "old trials: judged by another rule";
  return c;
}

std::vector<Condition> conditions(const std::vector<TrialGroup>& groups, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed) {
  std::map<std::pair<std::int64_t, double>, std::vector<const TrialGroup*>> places;  // by depth and rate
  std::vector<std::string> methods;  // in order of first appearance, but for the control
  std::set<double> rates;
  for (const TrialGroup& g : groups) {
    const double rate = how.own_rates ? 0 : g.lr();
    places[{g.depth(), rate}].push_back(&g), rates.insert(rate);
    if (std::ranges::find(methods, g.method) == methods.end())
      methods.insert(g.method == how.control ? methods.begin() : methods.end(), g.method);
  }
  std::vector<Condition> found;
  for (auto& [place, here] : places) {
    std::ranges::stable_sort(here, {}, [&](const TrialGroup* g) { return std::ranges::find(methods, g->method); });
    const auto [depth, rate] = place;
    Condition condition{.depth = depth};
    if (rates.size() > 1)
      condition.rate = rate;
    else if (!how.own_rates)
      condition.shared_rate = rate > 0 ? std::optional(rate) : how.rate;
    for (const TrialGroup* g : here) condition.standings.push_back(standing_of(*g, how));
    condition.has_control = here.front()->method == how.control;
    std::vector<Contrast> family;
    for (std::size_t i = 1; i < here.size() && condition.has_control; ++i)
      family.push_back(contrast_of(*here[i], here.front(), "train_loss", how));
    for (Difference& d : judge_family(family)) {
      const std::size_t first = condition.against_control.size() + 1;
      condition.against_control.push_back({first, 0, std::move(d)});
    }
    for (std::size_t i = 0; i < here.size(); ++i)
      for (std::size_t j = i + 1; j < here.size(); ++j) {
        Difference d = judge_family({contrast_of(*here[i], here[j], "train_loss", how)}).front();
        d.better = d.lost = Side::none, d.equal = false, d.wanted.clear(), d.needs = unknown;  // no verdict
        condition.pairs.push_back({i, j, std::move(d)});
      }
    for (const ClaimedPair& claim : claimed)
      if (!condition.rate || (claim.rate_first == condition.rate && claim.rate_second == condition.rate))
        for (std::vector<JudgedPair>* pairs : {&condition.against_control, &condition.pairs})
          take_verdict(*pairs, condition.standings, claim);
    found.push_back(std::move(condition));
  }
  return found;
}

}  // namespace plumb::lab
