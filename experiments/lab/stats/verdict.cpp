#include "experiments/lab/stats/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "experiments/lab/record/csv.h"

namespace plumb::lab {
namespace {

// Lists names: "a", "a and b", "a, b and c". A list of more than six names ends with the number of the other names.
std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 6;
  std::vector<std::string> shown(names.begin(),
                                 names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), most)));
  if (names.size() > most) shown.push_back(fmt::format("{} more", names.size() - most));
  std::string text = shown.front();
  for (std::size_t i = 1; i < shown.size(); ++i) text += (i + 1 == shown.size() ? " and " : ", ") + shown[i];
  return text;
}

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

std::string loss_of(const Standing& s) {
  if (s.loss.half_width) return fmt::format("{:.3f} ± {:.3f} (n = {})", s.loss.mean, *s.loss.half_width, s.loss.n);
  return fmt::format("{:.3f} (n = {})", s.loss.mean, s.loss.n);
}

// The comparisons with the control in words. Empty if there are no comparisons.
std::string against_control(const Condition& condition) {
  std::map<std::string, std::vector<std::string>> methods;  // by verdict
  for (const auto& [first, second, d] : condition.against_control)
    if (d.duel.seeds > 1)  // sentence() already says that one seed gives no interval
      methods[d.obstacle.empty() ? verdict_words(d) : d.obstacle].push_back(
          fmt::format("{} ({}:{})", condition.standings[first].method, d.duel.wins, d.duel.losses));
  std::vector<std::string> parts;
  for (const auto& [verdict, some] : methods)
    parts.push_back(verdict == "no verdict" ? "no verdict on " + listed(some)
                                            : fmt::format("{}: {}", listed(some), verdict));
  return parts.empty() ? ""
                       : fmt::format(" Against {}: {}.", condition.standings.front().method, fmt::join(parts, "; "));
}

}  // namespace

bool has_training_losses(const std::vector<TrialResult>& trials) {
  return std::ranges::any_of(trials, [](const TrialResult& a) { return a.value("train_loss").has_value(); }) ||
         std::ranges::none_of(trials, [](const TrialResult& a) { return a.status == Status::ok; });
}

bool near_chance(const TrialGroup& group, const Chance& chance) {
  std::vector<double> losses;
  for (const TrialResult* a : group.averaged()) losses.push_back(a->clean_loss(chance.loss));
  const Summary loss = summarize(losses);
  return loss.n > 0 && loss.mean >= near_chance_share * chance.loss;
}

std::string near_chance_rule(const std::vector<TrialResult>& trials, const Chance& chance) {
  const bool soft =
      std::ranges::any_of(trials, [](const TrialResult& a) { return a.value(target_entropy_name).has_value(); });
  return fmt::format("mean training loss at or above {:.0f} % of {}{}", 100 * near_chance_share,
                     soft ? "the way from target_entropy to " : "", chance.text);
}

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

std::string Standing::lost_words() const {
  std::vector<std::string> words;
  for (const auto& [n, what] : {std::pair(diverged, "diverged"),
                                {stopped, "hopeless"},
                                {none_trained ? 0 : seeds - trained - diverged - stopped, "did not train"}})
    if (n > 0) words.push_back(fmt::format("{} of {} {}", n, seeds, what));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string sentence(const Condition& condition, const Judging& how) {
  const Standing* best = nullptr;  // a method that lost a seed ranks below all methods that lost none
  std::vector<std::pair<std::string, std::vector<std::string>>> rest;  // methods by what is said about them
  for (const Standing& s : condition.standings) {
    const auto rank = [](const Standing& one) { return std::pair(one.seeds - one.trained, one.loss.mean); };
    if (s.trained > 0 && (!best || rank(s) < rank(*best))) best = &s;
    const std::string words = s.near_chance    ? fmt::format("stayed near chance ({})", how.chance.text)
                              : s.none_trained ? "did not train"
                              : s.seeds == 0   ? "ended without a training loss"
                                               : s.lost_words();
    if (words.empty()) continue;
    auto found = std::ranges::find(rest, words, &std::pair<std::string, std::vector<std::string>>::first);
    if (found == rest.end()) found = rest.insert(found, {words, {}});
    found->second.push_back(s.method);
  }
  std::string text = condition.depth > 0 ? fmt::format("At depth {}", condition.depth) : "Among all trials";
  if (const std::optional<double> rate = condition.rate ? condition.rate : condition.shared_rate)
    text += fmt::format(" {} lr {}", condition.depth > 0 ? "and" : "at", *rate);
  text += !best ? ", no method trained"
                : fmt::format(", {} {}, to a training loss of {}", best->method,
                              condition.standings.size() > 1 ? "trained best" : "trained", loss_of(*best));
  if (best && best->rate) text += fmt::format(" at lr {}", *best->rate);
  if (best && condition.standings.size() > 1 && !best->loss.half_width)
    text += "; one seed gives no interval to rank by";
  for (const auto& [words, methods] : rest) text += fmt::format("; {}: {}", listed(methods), words);
  return text + "." + (best ? against_control(condition) : "");
}

std::string comparisons_csv(const std::vector<Condition>& conditions) {
  std::vector<std::string> header{"depth", "lr", "family", "first", "second", "verdict"};
  std::ranges::copy(difference_columns, std::back_inserter(header));
  header.insert(header.end(), {"lr_first", "lr_second"});
  CsvTable table(header);
  for (const Condition& condition : conditions)
    for (const auto& [family, pairs] :
         {std::pair(std::string_view("control"), &condition.against_control), {"pairs", &condition.pairs}})
      for (const auto& [a, b, d] : *pairs) {
        table.cell(condition.depth)
            .cell(condition.rate ? *condition.rate : condition.shared_rate.value_or(unknown))
            .cell(family);
        table.cell(std::string_view(condition.standings[a].method))
            .cell(std::string_view(condition.standings[b].method));
        table.cell(std::string_view(verdict_words(d)));
        add_cells(table, d, 1);
        for (const std::size_t side : {a, b}) table.cell(condition.standings[side].rate.value_or(unknown));
        table.end_row();
      }
  return table.text();
}

}  // namespace plumb::lab
