#include "experiments/lab/stats/comparison.h"

#include <fmt/format.h>

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
  bool unfinished = false;  // whether a neighbour has trials for some of the seeds only
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
      d.obstacle = "the difference is below the resolution of the measure";
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
    if (at_chosen[i].rejected) {
      const AtRates& at = first_leads ? first : second;
      d.lost = first_leads ? Side::second : Side::first;
      d.neighbours = at.neighbours, d.wanted = at.wanted, d.beyond = at.beyond;
      if (d.neighbours == AtNeighbours::yes && !ordered[i].rejected)
        d.neighbours = at.unfinished ? AtNeighbours::not_trained : AtNeighbours::no;
    }
    if (ordered[i].rejected) d.better = first_leads ? Side::first : Side::second;
    d.equal = equal[i].rejected;
    d.needs = ordered[i].needs;
  }
  return results;
}

namespace {

Side other(Side side) { return side == Side::first ? Side::second : side == Side::second ? Side::first : side; }

}  // namespace

Difference negated(Difference d) {
  std::swap(d.duel.wins, d.duel.losses);
  std::swap(d.duel.first_ahead, d.duel.second_ahead);
  for (double& difference : d.duel.differences) difference = -difference;
  d.median = negated(d.median), d.better = other(d.better);
  return d;
}

Difference turned(Difference d) {
  d = negated(std::move(d));
  std::swap(d.duel.failed_first, d.duel.failed_second);
  d.lost = other(d.lost);
  return d;
}

std::string verdict_words(const Difference& d) {
  std::string words = d.better == Side::first ? "better" : d.better == Side::second ? "worse" : "";
  if (d.equal) words += fmt::format("{}equal within {:g}", words.empty() ? "" : ", ", *d.within);
  return words.empty() ? "no verdict" : words;
}

std::string effect_words(const Median& m, double sign) {
  if (m.n == 0) return "no seed trained with both";
  const double by = sign * m.value, turn = by < 0 ? -1 : 1;
  std::string text = by == 0 ? "equal" : fmt::format("{} by {:.3g}", by < 0 ? "lower" : "higher", turn * by);
  if (m.low)
    text += fmt::format(" ({:.3g} to {:.3g})", std::min(turn * sign * *m.low, turn * sign * *m.high),
                        std::max(turn * sign * *m.low, turn * sign * *m.high));
  return text;
}

std::string describe(const Difference& d, double sign) {
  const Duel& u = d.duel;
  if (u.seeds == 0) return "no pairs";
  std::string text = fmt::format("{}:{}", u.wins, u.losses);
  if (u.wins + u.losses < u.seeds) text += fmt::format(" of {} seeds", u.seeds);
  text += ", " + effect_words(d.median, sign);
  if (u.failed_first + u.failed_second > 0)
    text += fmt::format("{}; {} and {} of {} seeds failed", d.median.n > 0 ? " where both train" : "", u.failed_first,
                        u.failed_second, u.seeds);
  if (!d.obstacle.empty()) return fmt::format("{}; E = {:.3g}; {}", text, d.evidence, d.obstacle);
  text += fmt::format("; E = {:.3g}, needs {:.3g} in a family of {}",
                      d.better == Side::none ? d.evidence : d.at_all_rates, d.needs, d.family);
  if (d.lost != Side::none)
    text += d.neighbours == AtNeighbours::this_rate ? "; at this rate"
            : d.neighbours == AtNeighbours::yes     ? "; stands at its neighbours"
            : d.neighbours == AtNeighbours::not_trained
                ? "; its neighbours are not trained"
                : fmt::format("; does not stand at its neighbours (E = {:.3g})", d.at_all_rates);
  for (const int step : d.beyond)
    text += fmt::format("; {} the chosen rate is beyond the bound of the rate", step < 0 ? "below" : "above");
  if (d.equal && d.better != Side::none) text += fmt::format("; equal within {:g}", *d.within);
  return text;
}

void add_cells(CsvTable& table, const Difference& d, double sign) {
  const Duel& u = d.duel;
  for (const std::int64_t count : {u.wins, u.losses, u.seeds, u.failed_first, u.failed_second}) table.cell(count);
  const double low = sign * d.median.low.value_or(NAN), high = sign * d.median.high.value_or(NAN);
  table.cell(sign * d.median.value).cell(std::min(low, high)).cell(std::max(low, high));
  table.cell(d.evidence).cell(d.needs).cell(d.lost == Side::none ? NAN : d.at_all_rates);
  table.cell(std::string_view(d.lost == Side::none ? "" : enum_name(d.neighbours)));
  table.cell(d.within ? d.equality : NAN).cell(std::string_view(d.obstacle));
}

}  // namespace plumb::lab
