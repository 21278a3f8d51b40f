#include "experiments/lab/stats/comparison.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::lab {
namespace {

// The evidence that the first arm is better than the second at all rates of the second.
struct AtRates {
  double evidence = 1;
  AtNeighbours neighbours = AtNeighbours::this_rate;
  std::vector<int> wanted = {}, beyond = {};
  bool unfinished = false;            // whether a neighbour has trials for some of the seeds only
  std::int64_t wins = 0, losses = 0;  // at the rate at which the first arm wins the smallest share
};

// The median cost over the seeds that both outcomes have.
std::pair<double, double> medians(const Outcomes& a, const Outcomes& b) {
  std::vector<double> first, second;
  for (std::size_t i = 0; i < a.size() && !std::isnan(a[i]) && !std::isnan(b[i]); ++i)
    if (std::min(a[i], b[i]) > -INFINITY) first.push_back(a[i]), second.push_back(b[i]);
  return {median_of(first).value, median_of(second).value};
}

// `better` and `worse` are the sides, and `forward` says whether `better` is the first of the contrast.
AtRates at_rates(const Contrast& c, const Duel& chosen, bool forward) {
  const Arm &better = forward ? c.first : c.second, &worse = forward ? c.second : c.first;
  AtRates all{.evidence = forward ? chosen.first_ahead : chosen.second_ahead};
  all.wins = forward ? chosen.wins : chosen.losses, all.losses = forward ? chosen.losses : chosen.wins;
  if (worse.at_this_rate) return all;
  all.neighbours = AtNeighbours::yes;
  const auto is_better_there =
      [&](int step) {  // counts the neighbour; returns whether it is better than the chosen rate
        if (std::ranges::find(worse.beyond, step) != worse.beyond.end()) {
          all.beyond.push_back(step);
          return false;
        }
        const auto there = worse.neighbours.find(step);
        if (there == worse.neighbours.end()) {
          all.wanted.push_back(step);
          return false;
        }
        const Duel d = forward ? duel(better.costs, there->second, c.margin, c.tie)
                               : duel(there->second, better.costs, c.margin, c.tie);
        all.evidence = std::min(all.evidence, forward ? d.first_ahead : d.second_ahead);
        all.unfinished = all.unfinished || d.seeds < chosen.seeds;
        const std::int64_t wins = forward ? d.wins : d.losses, losses = forward ? d.losses : d.wins;
        if (wins * (all.wins + all.losses) < all.wins * (wins + losses)) all.wins = wins, all.losses = losses;
        const auto [neighbour, own] = medians(there->second, worse.costs);
        return neighbour < own;
      };
  for (const int side : {-1, 1})
    if (is_better_there(side)) is_better_there(2 * side);
  if (!all.wanted.empty()) all.evidence = 1, all.neighbours = AtNeighbours::not_trained;
  return all;
}

}  // namespace

std::vector<Difference> judge_family(const std::vector<Contrast>& family) {
  std::vector<Difference> results;
  std::vector<std::pair<AtRates, AtRates>>
      rates;  // for each contrast, if the first side is better and if the second is
  std::vector<double> weights, chosen, all, equality;
  for (const Contrast& c : family) {
    Difference& d = results.emplace_back(
        Difference{.duel = duel(c.first.costs, c.second.costs, c.margin, c.tie), .within = c.equal_within});
    d.median = median_of(d.duel.differences);
    d.family = family.size();
    d.obstacle = c.obstacle;
    const auto& [first, second] = rates.emplace_back(at_rates(c, d.duel, true), at_rates(c, d.duel, false));
    if (c.equal_within) d.equality = lab::equality(c.first.costs, c.second.costs, *c.equal_within);
    d.evidence = std::max(d.duel.first_ahead, d.duel.second_ahead);
    d.at_all_rates = std::max(first.evidence, second.evidence);
    if (d.obstacle.empty() && d.duel.failed_first + d.duel.failed_second == 0 &&
        std::abs(d.median.value) < c.resolution)
      d.obstacle = below_resolution;
    const auto counted = [&](double evidence) { return d.obstacle.empty() ? evidence : 1; };
    weights.push_back(c.weight), chosen.push_back(counted(d.evidence)), all.push_back(counted(d.at_all_rates));
    equality.push_back(c.obstacle.empty() ? d.equality : 1);
  }
  const std::vector<Rejection> at_chosen = weighted_holm(chosen, weights, order_level),
                               ordered = weighted_holm(all, weights, order_level),
                               equal = weighted_holm(equality, weights, equality_level);
  for (std::size_t i = 0; i < family.size(); ++i) {
    Difference& d = results[i];
    const auto& [first, second] = rates[i];
    const bool first_leads =
        ordered[i].rejected ? first.evidence >= second.evidence : d.duel.first_ahead >= d.duel.second_ahead;
    const AtRates& at = first_leads ? first : second;
    d.least_wins = at.wins, d.least_losses = at.losses;
    if (at_chosen[i].rejected) {
      d.lost = first_leads ? Side::second : Side::first;
      d.neighbours = at.neighbours, d.wanted = at.wanted, d.beyond = at.beyond;
      if (d.neighbours == AtNeighbours::yes && !ordered[i].rejected)
        d.neighbours = at.unfinished ? AtNeighbours::not_trained : AtNeighbours::no;
    }
    if (ordered[i].rejected) d.better = first_leads ? Side::first : Side::second;
    d.equal = equal[i].rejected;
    d.needs = ordered[i].needs, d.equality_needs = equal[i].needs;
  }
  return results;
}

}  // namespace plumb::lab
