#include "experiments/lab/study/rate_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "experiments/lab/study/combinations.h"

namespace plumb::lab {

std::vector<std::int64_t> judged_seeds(const StudyDeclaration& study) {
  std::vector<std::int64_t> seeds = study.options.seeds;
  if (const auto* search = std::get_if<RateSearch>(&study.rates)) std::erase(seeds, search->seed);
  return seeds;
}

Point joined(Point point, const Point& more) {
  for (const auto& [axis, value] : more.entries()) point.set(axis, value);
  return point;
}

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int octave = 2, bound = 5 * octave;  // in ticks of half an octave
constexpr double reach = 1.3;                  // of the parabola, in octaves
constexpr double told = 0.02;                  // losses that differ by a smaller share do not tell rates apart

int tick_of(double start, double rate) { return static_cast<int>(std::lround(octave * std::log2(rate / start))); }

// The best rate. The lowest of equally good rates is the first in the map.
double best_of(const TriedRates& tried) {
  internal_check(!tried.empty(), "expected a learning rate that was tried");
  return std::ranges::min_element(tried, {}, &TriedRates::value_type::second)->first;
}

// The vertex of the parabola of choice_among(), or `best` without one.
double vertex_near(double best, const TriedRates& tried) {
  std::vector<std::pair<double, double>> points;  // octaves above the best rate, loss
  double first = best, last = best;
  for (const auto& [rate, loss] : tried)
    if (const double x = std::log2(rate / best); std::isfinite(loss) && std::abs(x) <= reach)
      points.emplace_back(x, loss), first = std::min(first, rate), last = std::max(last, rate);
  if (points.size() < 3) return best;
  // Least squares with polynomials that are orthogonal on the points: 1, u = x - mean, and v = u^2 - b u - c.
  const auto n = static_cast<double>(points.size());
  double mean = 0, mean_y = 0, uu = 0, uuu = 0;
  for (const auto& [x, y] : points) mean += x / n, mean_y += y / n;
  for (const auto& [x, y] : points) uu += std::pow(x - mean, 2), uuu += std::pow(x - mean, 3);
  const double b = uuu / uu, c = uu / n;
  double uy = 0, vy = 0, vv = 0;
  for (const auto& [x, y] : points) {
    const double u = x - mean, v = u * u - b * u - c;
    uy += u * (y - mean_y), vy += v * (y - mean_y), vv += v * v;
  }
  const double curve = vy / vv;
  if (!(curve > 0)) return best;
  const double x = mean + (b - uy / uu / curve) / 2;  // where the derivative uy/uu + curve (2 u - b) is 0
  return std::clamp(rate_at(best, 2 * x), first, last);
}

// The sums of a value over the arms of a search, by rate; the sum is infinite if an arm has no finite value. The rates
// that not all arms have tried are left out.
template <class Value>
TriedRates tried_by(const std::vector<const Record*>& trials, Value&& value) {
  std::map<double, std::map<std::string, double>> by_rate;  // and by combination; a later trial replaces an earlier one
  std::size_t arms = 0;
  for (const Record* r : trials) {
    auto& at = by_rate[r->point.get<double>("lr")];
    const double v = value(*r);
    at[cell_of(r->point).label()] = std::isfinite(v) ? v : infinity;
    arms = std::max(arms, at.size());
  }
  TriedRates tried;
  for (const auto& [rate, values] : by_rate) {
    if (values.size() < arms) continue;
    double& sum = tried[rate] = 0;
    for (const auto& [cell, v] : values) sum += v;
  }
  return tried;
}

// Why no rate of a search trains: no loss is finite, or all finite losses are within 2 % of each other and near chance.
// Empty if a rate trains, or if the trials have no training losses.
std::string why_blind(const std::vector<const Record*>& trials, double chance) {
  double lowest = infinity, highest = 0;
  for (const Record* r : trials) {
    const double entropy = r->value(target_entropy_name);
    const double loss = clean_loss(r->outcome("train_loss"), std::isnan(entropy) ? 0 : entropy, chance);
    if (r->status == Status::ok && std::isnan(loss)) return "";
    if (std::isfinite(loss)) lowest = std::min(lowest, loss), highest = std::max(highest, loss);
  }
  const auto [low, high] = std::ranges::minmax(trials, {}, [](const Record* r) { return r->point.get<double>("lr"); });
  const std::string rates = fmt::format("{} to {}", low->point.get<double>("lr"), high->point.get<double>("lr"));
  if (std::isinf(lowest)) return "diverged at " + rates;
  return lowest >= near_chance_share * chance && highest - lowest <= told * lowest ? "stayed near chance at " + rates
                                                                                   : "";
}

// Half of the steps of a cell, rounded up, or all steps (search_steps_words).
std::int64_t steps_of_search(const StudyDeclaration& study, const RateSearch& search, const Point& cell) {
  const StudyOptions o = study.by_point.study(cell);
  const std::int64_t half = std::max<std::int64_t>((o.steps + 1) / 2, 1);
  return search.parabola && 2 * o.warmup.value_or(0) > half ? std::max<std::int64_t>(o.steps, 1) : half;
}

Point trial_of_search(const StudyDeclaration& study, const RateSearch& search, const Point& cell, double rate) {
  return {{"lr", rate}, {search_steps, steps_of_search(study, search, cell)}, {"seed", search.seed}};
}

// The combinations of a search at `place`, each without the axes of `place`.
std::vector<Point> arms_of(const StudyDeclaration& study, const Point& place) {
  if (study.shared_by.empty()) return {Point()};
  std::vector<Point> arms;
  for (Point cell : cells_of(study)) {
    if (!cell.contains(place)) continue;
    for (const auto& [axis, value] : place.entries()) cell = cell.without(axis);
    arms.push_back(std::move(cell));
  }
  return arms;
}

std::vector<Point> next_trials(const StudyDeclaration& study, const Search& search) {
  std::vector<Point> points;
  const auto judge_at = [&](double rate) {
    for (const Point& arm : arms_of(study, search.point))
      for (const std::int64_t seed : judged_seeds(study)) points.push_back(joined(arm, {{"lr", rate}, {"seed", seed}}));
  };
  const auto is_over = [](const Record* r) { return r->status == Status::failed || !is_of_search(r->point); };
  if (std::ranges::any_of(search.so_far, is_over)) return {};
  if (const auto* chosen = std::get_if<ChosenRates>(&study.rates)) {
    const RateChoice* choice = choice_for(chosen->choices, search.point);
    internal_check(choice, "no learning rate for {}", search.point.label());
    if (search.round == 0) judge_at(choice->rate);
    return points;
  }
  const RateSearch& rule = std::get<RateSearch>(study.rates);
  const RateCriterion& by = study.rates_by;
  check(search.so_far.empty() ||
            std::ranges::any_of(search.so_far, [&](const Record* r) { return !std::isnan(r->outcome(by.value)); }),
        "the search for a learning rate compares {}, which no trial of {} measured: call Trial::train, or "
        "Trial::measure in the loop of the study; or give --at-lr",
        by.value, name_of_cell(search.point));
  if (!ignores_rate(search.so_far, by))
    for (const double rate : next_rates(rule.start, losses_of(search.so_far, by)))
      for (const Point& arm : arms_of(study, search.point))
        points.push_back(joined(arm, trial_of_search(study, rule, joined(search.point, arm), rate)));
  if (points.empty()) judge_at(choice_by(search.so_far, search.point, by, rule.parabola).rate);
  return points;
}

}  // namespace

std::vector<double> next_rates(double start, const TriedRates& tried) {
  const auto rates = [&](std::initializer_list<int> ticks) {
    std::vector<double> some;
    for (const int tick : ticks) some.push_back(rate_at(start, tick));
    return some;
  };
  if (tried.empty()) return rates({-octave, 0, octave});
  if (std::ranges::any_of(tried, [&](const auto& t) { return tick_of(start, t.first) % octave != 0; })) return {};
  const int best = tick_of(start, best_of(tried));
  if (best == tick_of(start, tried.rbegin()->first) && best < bound) return rates({best + octave});
  if (best == tick_of(start, tried.begin()->first) && best > -bound) return rates({best - octave});
  return rates({best - 1, best + 1});
}

RateChoice choice_among(const TriedRates& tried, const Point& cell, const RateCriterion& by, bool parabola) {
  const double best = best_of(tried), lowest = tried.at(best);
  double highest = lowest;  // of the finite losses
  for (const auto& [rate, loss] : tried)
    if (std::isfinite(loss)) highest = std::max(highest, loss);
  const double half = (lowest + highest) / 2;
  std::optional<double> inside;
  for (auto at = tried.begin(); at != tried.end() && at->first <= best; ++at) {
    const auto next = std::next(at);
    const bool at_edge = next != tried.end() && next->second > half;
    if (at->second <= half && !at_edge && (!inside || at->second < tried.at(*inside))) inside = at->first;
  }
  const bool moved = inside && *inside != best;
  RateChoice choice{.cell = cell, .rate = moved ? *inside : parabola ? vertex_near(best, tried) : best, .by = by};
  for (const auto& [each, loss] : tried) choice.tried.emplace_back(each, by.cost(loss));
  choice.at_bound = choice.rate <= tried.begin()->first || choice.rate >= tried.rbegin()->first;
  if (moved) choice.passed_over = best;
  return choice;
}

std::string name_of_cell(const Point& cell) { return cell.entries().empty() ? "this study" : cell.label(); }

TriedRates losses_of(const std::vector<const Record*>& trials, const RateCriterion& by) {
  return tried_by(trials, [&](const Record& r) { return by.cost(r.outcome(by.value)); });
}

bool ignores_rate(const std::vector<const Record*>& trials, const RateCriterion& by) {
  const auto equal = [&](const std::string& name) {
    const TriedRates tried = tried_by(trials, [&](const Record& r) { return r.outcome(name); });
    return tried.size() >= 3 && std::isfinite(tried.begin()->second) &&
           std::ranges::all_of(tried, [&](const auto& t) { return t.second == tried.begin()->second; });
  };
  if (!equal(by.value)) return false;
  // Equal values of a score do not tell: networks that learned nothing have the same accuracy. A training loss of 0 is
  // as low as a loss gets, so several rates may reach it.
  const double loss = trials.front()->outcome("train_loss");
  return std::isnan(loss) ? by.better == Better::lower : equal("train_loss") && loss != 0;
}

RateChoice choice_by(const std::vector<const Record*>& trials, const Point& cell, const RateCriterion& by,
                     bool parabola) {
  RateChoice choice = choice_among(losses_of(trials, by), cell, by, parabola);
  choice.seed = trials.front()->seed();
  if (!ignores_rate(trials, by)) return choice;
  choice.unread = true;
  choice.rate = choice.tried[1].first;  // the middle one of a search that ended after its first trials
  choice.at_bound = false, choice.passed_over.reset();
  return choice;
}

NextPoints rate_search(const StudyDeclaration& study) {
  return [&study](const Search& search) { return next_trials(study, search); };
}

std::string note_on_rates(const StudyDeclaration& study, const Search& search, const Chance& chance) {
  const std::vector<const Record*>& trials = search.so_far;
  if (!std::holds_alternative<RateSearch>(study.rates) || trials.empty() ||
      !std::ranges::all_of(trials,
                           [](const Record* r) { return r->status != Status::failed && is_of_search(r->point); }))
    return "";
  if (ignores_rate(trials, study.rates_by))
    return "the body does not read the learning rate of its trial: all rates of a search give the same loss, so the "
           "search ends and no rate is shown (read it in the body: trial.task_settings().optimization.lr)";
  const std::string blind = why_blind(trials, chance.loss);
  return blind.empty() ? ""
                       : fmt::format("no learning rate trains {} so far: it {} after {}", name_of_cell(search.point),
                                     blind, search_steps_words(study, {search.point}));
}

namespace {

// The neighbours whose rates the option of the rate does not accept.
std::vector<int> beyond_of(const StudyDeclaration& study, double rate) {
  const AxisData* axis = study.axis("lr");
  const CliOption* option = axis ? axis->declared : study.cli.declared("--lr");
  std::vector<int> beyond;
  for (const int step : {-2, -1, 1, 2})
    if (option && !option->accepts(rate_at(rate, step))) beyond.push_back(step);
  return beyond;
}

}  // namespace

std::vector<RateChoice> chosen_rates(const StudyDeclaration& study, const std::vector<Record>& trials,
                                     const Chance& chance) {
  if (!study.has_own_rates()) return {};
  const auto* chosen = std::get_if<ChosenRates>(&study.rates);
  std::vector<std::pair<Point, std::vector<const Record*>>> searches;  // by place
  const auto add = [&](const Record& r) {
    if (!is_of_search(r.point) || r.status == Status::failed) return;
    const Point place = place_of(study, cell_of(r.point));
    auto found = std::ranges::find(searches, place, &std::pair<Point, std::vector<const Record*>>::first);
    if (found == searches.end()) found = searches.insert(found, {place, {}});
    found->second.push_back(&r);
  };
  if (chosen)
    for (const LedgerEntry& e : chosen->searches) add(e.record);
  else
    for (const Record& r : trials) add(r);
  std::vector<RateChoice> choices;
  for (const auto& [place, tried] : searches) {
    const RateCriterion& by = study.rates_by;
    if (chosen) {
      choices.push_back(*choice_for(chosen->choices, place));
    } else if (const auto& search = std::get<RateSearch>(study.rates);
               ignores_rate(tried, by) || next_rates(search.start, losses_of(tried, by)).empty()) {
      choices.push_back(choice_by(tried, place, by, search.parabola));
    } else {
      continue;
    }
    RateChoice& choice = choices.back();
    choice.beyond = beyond_of(study, choice.rate);
    choice.blind = why_blind(tried, chance.loss);
    if (choice.blind.empty() && std::ranges::all_of(choice.tried, [](const auto& t) { return std::isinf(t.second); }))
      choice.blind = "failed at each tried rate at one of the values that share it";
  }
  return choices;
}

std::vector<Point> neighbour_trials(const StudyDeclaration& study, const StudyResults& results) {
  std::vector<Point> points;
  for (const auto& [cell, step] : results.wanted) {
    const RateChoice* choice = choice_for(results.judging.rates, cell);
    if (!choice) continue;
    std::vector<std::int64_t> seeds = judged_seeds(study);
    for (const Record& r : results.records)
      if (cell_of(r.point) == cell && std::ranges::find(seeds, r.seed()) == seeds.end()) seeds.push_back(r.seed());
    for (const std::int64_t seed : seeds)
      points.push_back(
          joined(cell, {{"lr", rate_at(choice->rate, step)}, {neighbour_steps, std::int64_t{step}}, {"seed", seed}}));
  }
  return points;
}

std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& cells) {
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return {};
  std::vector<Point> all;
  for (const Point& place : cells)
    for (const Point& arm : arms_of(study, place)) {
      const Point cell = joined(place, arm);
      all.insert(all.end(), usual_trials - next_rates(search->start, {}).size(),
                 joined(cell, trial_of_search(study, *search, cell, search->start)));
      for (const std::int64_t seed : judged_seeds(study))
        all.push_back(joined(cell, {{"lr", search->start}, {"seed", seed}}));
    }
  return all;
}

std::string plan_of_search(const StudyDeclaration& study, const std::vector<Point>& cells) {
  const auto* search = std::get_if<RateSearch>(&study.rates);
  if (!search) return "";
  std::set<std::int64_t> lengths;
  std::size_t arms = 0;
  for (const Point& place : cells)
    for (const Point& arm : arms_of(study, place))
      lengths.insert(study.by_point.study(joined(place, arm)).steps), ++arms;
  const std::size_t seeds = judged_seeds(study).size();
  return fmt::format(
      "search: about {} trials of {} for each of {} combinations, of which the first {} are listed; then {} trials{} "
      "at the chosen rates, and {} trials at neighbouring rates for each combination that loses a comparison\n",
      usual_trials, search_steps_words(study, cells), arms, next_rates(search->start, {}).size(), arms * seeds,
      lengths.size() == 1 ? fmt::format(" of {} steps", *lengths.begin()) : "", 2 * seeds);
}

std::string search_steps_words(const StudyDeclaration& study, const std::vector<Point>& cells) {
  std::set<std::int64_t> lengths;
  for (const Point& place : cells)
    for (const Point& arm : arms_of(study, place))
      lengths.insert(steps_of_search(study, std::get<RateSearch>(study.rates), joined(place, arm)));
  return lengths.size() == 1 ? fmt::format("{} steps", *lengths.begin()) : "half of the steps";
}

}  // namespace plumb::lab
