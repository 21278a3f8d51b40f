// The first charts of a report: rankings of methods, and the heat map of methods by depth.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "experiments/lab/report/parts.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {
namespace {

std::string name_of(const Condition& condition) {
  std::string name = condition.depth > 0 ? fmt::format("{}", condition.depth) : "";
  if (condition.rate) name += fmt::format("{}lr {}", name.empty() ? "" : ", ", *condition.rate);
  return name;
}

std::int64_t lost(const Standing& s) { return s.diverged + s.stopped; }
std::int64_t untrained(const Standing& s) { return s.seeds - s.trained; }

// A sort key. A method with a seed that did not train ranks below all methods without one. A method without a loss
// ranks last.
std::tuple<bool, std::int64_t, double> rank_of(const Standing& s) {
  return {s.loss.n == 0, untrained(s), s.loss.n == 0 ? 0 : s.loss.mean};
}

std::vector<const Standing*> ranked(const Condition& condition) {
  std::vector<const Standing*> all;
  for (const Standing& s : condition.standings) all.push_back(&s);
  std::ranges::stable_sort(all, {}, [](const Standing* s) { return rank_of(*s); });
  return all;
}

std::string all_of(const Standing& s, const Condition& condition) {
  std::string text = s.method;
  if (condition.depth > 0) text += fmt::format(", depth {}", condition.depth);
  if (const std::optional<double> rate = s.rate ? s.rate : condition.rate) text += fmt::format(", lr {}", *rate);
  text += "\ntraining loss " + to_string(s.loss) + fmt::format(", n = {}", s.loss.n);
  if (const std::string words = s.lost_words(); !words.empty()) text += "\n" + words;
  if (s.none_trained) text += s.near_chance ? "\nnear chance" : "\ndid not train";
  return text;
}

// The note next to a method: its lost seeds, "near chance", or the order of the method against the control.
std::string beside_control(const Condition& condition, const Standing& s) {
  if (const std::string words = s.lost_words(); !words.empty()) return words;
  if (s.none_trained) return s.near_chance ? "near chance" : "did not train";
  if (!condition.has_control) return "";
  if (&s == &condition.standings.front()) return "control";
  for (const JudgedPair& pair : condition.against_control)
    if (const Difference& d = pair.difference; &condition.standings[pair.first] == &s && d.duel.seeds > 1)
      return fmt::format("{}{}:{}", d.obstacle.empty() ? verdict_words(d) + ", " : "", d.duel.wins, d.duel.losses);
  return "";
}

std::string standing_words(const Condition& condition, const Standing& s) {
  const std::string words = beside_control(condition, s);
  return s.rate ? fmt::format("{}{}lr {}", words, words.empty() ? "" : ", ", *s.rate) : words;
}

}  // namespace

std::vector<DotPlot> rankings(const std::vector<Condition>& conditions, const Chance& chance,
                              const std::vector<Reference>& references) {
  std::vector<DotPlot> plots;
  std::int64_t deepest = 0;
  for (const Condition& condition : conditions) deepest = std::max(deepest, condition.depth);
  for (const Condition& condition : conditions) {
    if (condition.rate && condition.depth < deepest) continue;  // only the heat map shows smaller depths
    if (condition.standings.size() < 2 ||
        std::ranges::none_of(condition.standings, [](const Standing& s) { return s.loss.n > 0; }))
      continue;
    const std::string name = name_of(condition);
    DotPlot plot{.id = name.empty() ? "ranking" : slug("ranking-depth-" + name),
                 .title = name.empty() ? "All trials" : (condition.depth > 0 ? "Depth " : "") + name,
                 .x = {.title = "training loss"}};
    if (chance.known()) plot.rules.push_back({chance.loss, "chance, " + chance.text});
    for (const Reference& r : references)
      if (r.value == "train_loss" && !r.chance)
        plot.rules.push_back({r.level, fmt::format("{}, {:.3f}", r.name, r.level)});
    for (const Standing* s : ranked(condition)) {
      DotRow row{.name = s->method,
                 .note = standing_words(condition, *s),
                 .title = all_of(*s, condition),
                 .quiet = s->none_trained || s->loss.n == 0};
      row.dot.x = s->loss.mean;
      if (s->loss.half_width) row.dot.low = s->loss.low(), row.dot.high = s->loss.high();
      if (s->loss.n > 1)
        for (const double v : s->losses)
          if (std::isfinite(v)) row.singles.push_back(v);
      plot.rows.push_back(std::move(row));
    }
    // If no mean is below 0, the axis does not begin below 0.
    if (std::ranges::none_of(plot.rows, [](const DotRow& row) { return row.dot.x < 0; })) plot.x.least = 0;
    plots.push_back(std::move(plot));
  }
  std::ranges::reverse(plots);  // the deepest condition comes first
  return plots;
}

std::optional<HeatMap> overview(const std::vector<Condition>& conditions, const Chance& chance) {
  if (conditions.size() < 2 ||
      std::ranges::all_of(conditions, [](const Condition& p) { return p.standings.size() < 2; }))
    return std::nullopt;
  const bool depths = std::ranges::all_of(conditions, [](const Condition& p) { return p.depth > 0; });
  HeatMap map{.id = "overview",
              .title = "Training loss by method and " + std::string(depths ? "depth" : "learning rate")};
  const bool rates = std::ranges::any_of(conditions, [](const Condition& p) { return p.rate.has_value(); });
  map.columns_title = !rates ? "depth" : depths ? "depth and learning rate" : "learning rate";
  for (const Condition& condition : conditions)
    map.columns.push_back({condition.depth > 0 ? std::to_string(condition.depth) : "",
                           condition.rate ? fmt::format("{}", *condition.rate) : ""});
  // Rows are sorted by the best result at the largest depth (over all learning rates). Methods without trials at the
  // largest depth come last.
  std::map<std::string, std::tuple<std::int64_t, bool, std::int64_t, double>> worth;
  for (const Condition& condition : conditions)
    for (const Standing& s : condition.standings) {
      const auto here = std::tuple_cat(std::tuple(-condition.depth), rank_of(s));
      const auto [at, fresh] = worth.try_emplace(s.method, here);
      if (fresh) map.rows.push_back(s.method);
      at->second = std::min(at->second, here);
    }
  std::ranges::stable_sort(map.rows, {}, [&](const std::string& method) { return worth.at(method); });
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Condition& condition : conditions)
    for (const Standing& s : condition.standings)
      if (s.loss.n > 0) low = std::min(low, s.loss.mean), high = std::max(high, s.loss.mean);
  if (low > high) return std::nullopt;
  if (chance.known()) low = 0, high = chance.loss;
  for (const std::string& method : map.rows)
    for (const Condition& condition : conditions) {
      HeatCell& cell = map.cells.emplace_back();
      const auto s = std::ranges::find(condition.standings, method, &Standing::method);
      if (s == condition.standings.end()) continue;
      cell.value = s->loss.mean;
      cell.title = all_of(*s, condition);
      const std::int64_t bad = s->none_trained ? lost(*s) : untrained(*s);
      cell.crossed = bad > 0;
      if (s->loss.n > 0) {
        const double size = std::abs(s->loss.mean);
        cell.text =
            size >= 0.1 && size < 100 ? fmt::format("{:.2f}", s->loss.mean) : fmt::format("{:.2g}", s->loss.mean);
        if (bad > 0) cell.text += fmt::format(" ✕{}", bad);
        const double level = chance.known() ? s->clean_mean : s->loss.mean;
        cell.strength = high > low ? (high - level) / (high - low) : 1;
      } else {
        cell.text = s->diverged > 0 ? "diverged" : s->stopped > 0 ? "hopeless" : "–";
      }
    }
  map.legend = chance.known() ? "mean training loss; paler is nearer to chance, " + chance.text
                              : "mean training loss; a stronger colour is a lower loss";
  if (std::ranges::any_of(map.cells, [](const HeatCell& c) { return c.crossed; }))
    map.legend += "; ✕n: n seeds did not train, and the mean is over the others";
  return map;
}

}  // namespace plumb::lab
