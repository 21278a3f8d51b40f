#include "experiments/lab/stats/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/record/record.h"

namespace plumb::lab {
namespace {

using Order = Difference::Order;

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

// The trials of one method at one depth and learning rate, by seed.
using Cell = std::map<std::uint64_t, const TrialResult*>;
using ByRate = std::map<double, Cell>;

// An order of points, for maps.
struct LabelOrder {
  bool operator()(const Point& a, const Point& b) const { return a.label() < b.label(); }
};

// A trial that ended ok without a training loss has no outcome.
Standing standing_of(const std::string& method, const Cell& cell, const std::vector<std::uint64_t>& seeds,
                     double chance) {
  Standing s{.method = method};
  for (const std::uint64_t seed : seeds) {
    const auto trial = cell.find(seed);
    s.losses.push_back(trial == cell.end() ? unknown : trial->second->outcome("train_loss"));
    s.clean.push_back(trial == cell.end() ? unknown : trial->second->clean_loss(chance));
    if (std::isnan(s.losses.back())) continue;
    ++s.seeds;
    const Status status = trial->second->status;
    s.diverged += status == Status::diverged, s.stopped += status == Status::hopeless;
  }
  return s;
}

// Decides which seeds of the standings trained.
void judge_training(std::vector<Standing>& standings, double chance) {
  std::vector<Outcomes> losses;
  for (const Standing& s : standings) losses.push_back(s.clean);
  const std::vector<Outcomes> judged = with_failures(losses, chance);
  for (std::size_t i = 0; i < standings.size(); ++i) {
    Standing& s = standings[i];
    s.judged = s.losses;
    for (std::size_t k = 0; k < s.judged.size(); ++k)
      if (std::isinf(judged[i][k])) s.judged[k] = judged[i][k];
    s.trained = std::ranges::count_if(s.judged, [](double loss) { return std::isfinite(loss); });
    s.loss = summarize(s.trained > 0 ? s.judged : s.losses);
    s.clean_mean = summarize(s.trained > 0 ? judged[i] : s.clean).mean;
    s.none_trained = s.trained == 0 && s.loss.n > 0;
    s.near_chance = s.none_trained && s.clean_mean >= near_chance_share * chance;
  }
}

std::vector<JudgedPair> judged(const std::vector<Standing>& standings,
                               std::vector<std::pair<std::size_t, std::size_t>> family, double level) {
  std::erase_if(family,
                [&](const auto& pair) { return standings[pair.first].untested || standings[pair.second].untested; });
  // Only tested methods contribute to the variances.
  std::vector<Outcomes> series;
  std::vector<std::size_t> condition(standings.size());
  for (std::size_t i = 0; i < standings.size(); ++i) {
    if (standings[i].untested) continue;
    condition[i] = series.size();
    series.push_back(standings[i].judged);
  }
  std::vector<std::pair<std::size_t, std::size_t>> among;
  for (const auto& [a, b] : family) among.emplace_back(condition[a], condition[b]);
  const std::vector<Difference> differences = compare(series, among, level);
  std::vector<JudgedPair> pairs;
  for (std::size_t k = 0; k < family.size(); ++k) pairs.push_back({family[k].first, family[k].second, differences[k]});
  return pairs;
}

// The difference with its first and second series exchanged.
Difference turned(Difference d) {
  d = negated(d);
  using enum Difference::Training;
  d.training = d.training == more_often ? less_often : d.training == less_often ? more_often : d.training;
  std::swap(d.trained_first, d.trained_second);
  return d;
}

void take_verdict(std::vector<JudgedPair>& pairs, const std::vector<Standing>& standings, const ClaimedPair& claim) {
  for (auto& [first, second, difference] : pairs) {
    const std::string &a = standings[first].method, &b = standings[second].method;
    if (a == claim.first && b == claim.second) difference = claim.difference;
    if (a == claim.second && b == claim.first) difference = turned(claim.difference);
  }
}

std::string loss_of(const Standing& s) {
  if (s.loss.half_width) return fmt::format("{:.3f} ± {:.3f} (n = {})", s.loss.mean, *s.loss.half_width, s.loss.n);
  return fmt::format("{:.3f} (n = {})", s.loss.mean, s.loss.n);
}

// The name of a method without a verdict, with the number of seeds needed or the reason: "post (about 5 seeds would
// decide)".
std::string undecided(const Standing& s, const Difference& d) {
  if (d.doubt != Difference::Doubt::none) return fmt::format("{} ({})", s.method, to_string(d.doubt));
  const bool chosen = s.rate.has_value();  // if a rate was chosen, only some of the seeds are judged
  const std::int64_t needed = pairs_needed(d);
  return needed > 0 ? fmt::format("{} (about {} {}seeds would decide)", s.method, needed, chosen ? "judged " : "")
                    : s.method;
}

// The comparisons with the control in words. Empty if there are no comparisons.
std::string against_control(const Condition& condition) {
  using Training = Difference::Training;
  std::vector<std::string> lower, higher, less_often, more_often, none;
  for (const auto& [first, second, d] : condition.against_control) {
    if (d.n < 2) continue;  // sentence() already says that one seed gives no interval
    const std::string& method = condition.standings[first].method;
    if (d.order != Order::undecided) (d.order == Order::lower ? lower : higher).push_back(method);
    if (d.training != Training::undecided)
      (d.training == Training::less_often ? less_often : more_often).push_back(method);
    if (!is_decided(d)) none.push_back(undecided(condition.standings[first], d));
  }
  std::vector<std::string> parts;
  const auto add = [&](const std::vector<std::string>& some, const char* one, const char* several) {
    if (!some.empty()) parts.push_back(fmt::format("{} {}", listed(some), some.size() == 1 ? one : several));
  };
  add(lower, "is lower", "are lower"), add(higher, "is higher", "are higher");
  add(less_often, "trains less often", "train less often"), add(more_often, "trains more often", "train more often");
  if (!none.empty()) parts.push_back("no verdict on " + listed(none));
  if (parts.empty()) return "";
  return fmt::format(" Against {}: {}.", condition.standings.front().method, fmt::join(parts, "; "));
}

// What the seeds say about further seeds: how many may still fail although all of these trained.
std::string may_fail_words(const std::vector<Standing>& standings) {
  std::int64_t seeds = 0;
  for (const Standing& s : standings) {
    if (s.trained < s.seeds || s.seeds == 0 || (seeds > 0 && s.seeds != seeds)) return "";
    seeds = s.seeds;
  }
  return seeds < 2 ? ""
                   : fmt::format(" {} of {} seeds of each method trained; up to {:.0f} % may still fail.", seeds, seeds,
                                 100 * may_fail(seeds, seeds));
}

// The comparisons of the best method with the others in words, for a condition without a control.
std::string against_best(const Condition& condition, std::size_t best) {
  std::vector<std::string> none;
  std::size_t apart = 0;
  for (const auto& [a, b, d] : condition.pairs) {
    if (a != best && b != best) continue;
    if (!is_decided(d))
      none.push_back(undecided(condition.standings[a == best ? b : a], d));
    else
      ++apart;
  }
  if (!none.empty()) return "; no verdict between it and " + listed(none);
  return apart > 0 ? fmt::format("; it differs from {}", apart == 1 ? "the other" : "all others") : "";
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

std::vector<bool> which_trained(const std::vector<TrialResult>& trials, const Judging& how) {
  const double chance = how.chance.loss;
  std::map<std::pair<std::int64_t, double>, std::map<Point, Outcomes, LabelOrder>> sections;
  const auto section_of = [&](const TrialResult& a) { return std::pair(a.depth(), how.own_rates ? 0 : a.lr()); };
  for (const TrialResult& a : trials) sections[section_of(a)][a.point.without("seed")].push_back(a.clean_loss(chance));
  std::map<std::pair<std::int64_t, double>, std::optional<TrainingGap>> gaps;
  for (const auto& [section, series] : sections) {
    std::vector<Outcomes> losses;
    for (const auto& [point, outcomes] : series) losses.push_back(outcomes);
    gaps[section] = training_gap(losses, chance);
  }
  std::vector<bool> trained;
  for (const TrialResult& a : trials) {
    const double loss = a.clean_loss(chance);
    trained.push_back(std::isnan(loss) ? a.status == Status::ok : has_trained(loss, chance, gaps[section_of(a)]));
  }
  return trained;
}

std::vector<Condition> conditions(const std::vector<TrialResult>& trials, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed) {
  if (how.off || !has_training_losses(trials)) return {};
  std::vector<std::string> methods;
  std::set<std::int64_t> depths;
  std::set<double> rates;
  std::set<std::uint64_t> seeds;
  for (const TrialResult& a : trials) {
    if (std::ranges::find(methods, a.method) == methods.end()) methods.push_back(a.method);
    depths.insert(a.depth()), rates.insert(how.own_rates ? 0 : a.lr()), seeds.insert(a.seed());
  }
  if (const auto control = std::ranges::find(methods, how.control); control != methods.end())
    std::rotate(methods.begin(), control, control + 1);

  const std::vector<std::uint64_t> judging(seeds.begin(), seeds.end());
  std::map<std::pair<std::int64_t, std::string>, ByRate> table;
  for (const TrialResult& a : trials) table[{a.depth(), a.method}][how.own_rates ? 0 : a.lr()][a.seed()] = &a;

  const double level = level_of_look(how.look);
  struct Shallow {
    std::int64_t depth;
    bool trained;
  };
  std::map<std::pair<std::string, double>, Shallow> shallow;  // key: method and rate
  std::vector<Condition> found;
  for (const std::int64_t depth : depths)
    for (const double rate : rates) {
      Condition condition{.depth = depth};
      if (rates.size() > 1)
        condition.rate = rate;
      else if (!how.own_rates)
        condition.shared_rate = rate > 0 ? std::optional(rate) : how.rate;
      for (const std::string& method : methods) {
        const auto cell = table.find({depth, method});
        if (cell == table.end()) continue;
        const auto at_rate = cell->second.find(rate);
        if (at_rate == cell->second.end()) continue;
        Standing s = standing_of(method, at_rate->second, judging, how.chance.loss);
        if (const double own = at_rate->second.begin()->second->lr(); how.own_rates && own > 0) s.rate = own;
        condition.standings.push_back(std::move(s));
      }
      judge_training(condition.standings, how.chance.loss);
      for (Standing& s : condition.standings) {
        s.shallowest = depth;
        if (s.seeds == 0) continue;
        const Shallow& first = shallow.try_emplace({s.method, rate}, Shallow{depth, s.trained > 0}).first->second;
        s.shallowest = first.depth;
        s.untested = s.none_trained && !first.trained && depth > first.depth;
      }
      if (condition.standings.empty()) continue;
      condition.has_control = condition.standings.front().method == how.control;
      if (condition.has_control)
        condition.against_control = judged(condition.standings, against_first(condition.standings.size()), level);
      condition.pairs = judged(condition.standings, all_pairs(condition.standings.size()), level);
      for (const ClaimedPair& claim : claimed)
        if (claim.depth == depth && claim.rate == rate)
          for (std::vector<JudgedPair>* pairs : {&condition.against_control, &condition.pairs})
            take_verdict(*pairs, condition.standings, claim);
      found.push_back(std::move(condition));
    }
  return found;
}

std::string sentence(const Condition& condition, const Judging& how) {
  const auto names = [](const std::vector<const Standing*>& some) {
    std::vector<std::string> all;
    for (const Standing* s : some) all.push_back(s->method);
    return listed(all);
  };
  std::vector<const Standing*> trained, chance, high, diverged, stopped, unfinished;
  std::map<std::int64_t, std::vector<const Standing*>> untested;  // key: smallest depth with an outcome
  std::vector<std::string> partly;
  for (const Standing& s : condition.standings) {
    (s.untested       ? untested[s.shallowest]
     : s.near_chance  ? chance
     : s.none_trained ? high
     : s.loss.n > 0   ? trained
     : s.diverged > 0 ? diverged
     : s.stopped > 0  ? stopped
                      : unfinished)
        .push_back(&s);
    if (const std::int64_t others = s.seeds - s.trained - s.diverged - s.stopped; s.trained > 0 && others > 0)
      partly.push_back(fmt::format("{} did not train in {} of {} seeds", s.method, others, s.seeds));
    if (s.loss.n > 0 && s.diverged > 0)
      partly.push_back(fmt::format("{} diverged in {} of {} seeds", s.method, s.diverged, s.seeds));
    if (s.loss.n > 0 && s.stopped > 0)
      partly.push_back(fmt::format("{} was stopped as hopeless in {} of {} seeds", s.method, s.stopped, s.seeds));
  }
  std::string text = condition.depth > 0 ? fmt::format("At depth {}", condition.depth) : "Among all trials";
  if (const std::optional<double> rate = condition.rate ? condition.rate : condition.shared_rate)
    text += fmt::format(" {} lr {}", condition.depth > 0 ? "and" : "at", *rate);
  text += ",";
  std::string against = against_control(condition);
  if (trained.empty()) {
    text += " no method trained";
    against.clear();
  } else {
    // A method that lost a seed ranks below all methods that lost none.
    const auto best = *std::ranges::min_element(
        trained, {}, [](const Standing* s) { return std::pair(s->seeds - s->trained, s->loss.mean); });
    text += fmt::format(" {} {}, ", best->method, trained.size() == 1 ? "trained" : "trained best") +
            "to a training loss of " + loss_of(*best);
    if (best->rate) text += fmt::format(" at lr {}", *best->rate);
    if (condition.standings.size() > 1 && !best->loss.half_width)
      text += "; one seed gives no interval to rank by";
    else if (condition.standings.size() > 1 && !condition.has_control)
      text += against_best(condition, static_cast<std::size_t>(best - condition.standings.data()));
  }
  std::vector<std::string> rest;
  const std::string at_chance = fmt::format("stayed near chance ({})", how.chance.text);
  if (!chance.empty()) {
    const bool deeper = std::ranges::all_of(chance, [&](const Standing* s) { return s->shallowest < condition.depth; });
    rest.push_back(names(chance) + " " + at_chance + (deeper ? ", and trained at a smaller depth" : ""));
  }
  if (!high.empty()) rest.push_back(names(high) + " did not train");
  for (const auto& [depth, some] : untested)
    rest.push_back(fmt::format("{} {}, and did not train at depth {} either, so nothing follows about depth",
                               names(some),
                               std::ranges::all_of(some, &Standing::near_chance) ? at_chance : "did not train", depth));
  if (!diverged.empty()) rest.push_back(names(diverged) + " diverged");
  if (!stopped.empty())
    rest.push_back(fmt::format("{} {} stopped as hopeless", names(stopped), stopped.size() == 1 ? "was" : "were"));
  if (!partly.empty()) rest.push_back(listed(partly));
  if (!unfinished.empty()) rest.push_back(names(unfinished) + " ended without a training loss");
  for (std::size_t i = 0; i < rest.size(); ++i) text += (i == 0 && trained.empty() ? ": " : "; ") + rest[i];
  if (condition.standings.size() < 2) return text + ".";
  text += "." + against + may_fail_words(condition.standings);
  if (how.look > 1)
    text +=
        fmt::format(" This is look {} at the results, judged at {:.3g} %.", how.look, 100 * level_of_look(how.look));
  return text;
}

std::string comparisons_csv(const std::vector<Condition>& conditions) {
  CsvTable table({"depth", "lr", "family", "first", "second", "order", "training", "difference", "low", "high", "level",
                  "pairs", "trained", "trained_first", "trained_second", "doubt", "needed", "lr_first", "lr_second"});
  constexpr std::string_view orders[] = {"undecided", "lower", "higher"},
                             trainings[] = {"undecided", "more often", "less often"};
  for (const Condition& condition : conditions)
    for (const auto& [family, pairs] :
         {std::pair(std::string_view("control"), &condition.against_control), {"pairs", &condition.pairs}})
      for (const auto& [a, b, d] : *pairs) {
        const std::int64_t needed = d.order == Order::undecided ? pairs_needed(d) : d.trained;
        table.cell(condition.depth)
            .cell(condition.rate ? *condition.rate : condition.shared_rate.value_or(unknown))
            .cell(family);
        table.cell(std::string_view(condition.standings[a].method))
            .cell(std::string_view(condition.standings[b].method));
        table.cell(orders[static_cast<int>(d.order)]).cell(trainings[static_cast<int>(d.training)]);
        table.cell(d.mean).cell(d.low).cell(d.high).cell(d.level).cell(d.n);
        table.cell(d.trained).cell(d.trained_first).cell(d.trained_second);
        table.cell(std::string_view(to_string(d.doubt)));
        table.cell(needed > 0 ? static_cast<double>(needed) : unknown);
        for (const std::size_t side : {a, b}) table.cell(condition.standings[side].rate.value_or(unknown));
        table.end_row();
      }
  return table.text();
}

}  // namespace plumb::lab
