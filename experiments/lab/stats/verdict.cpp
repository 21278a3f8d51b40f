#include "experiments/lab/stats/verdict.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <tuple>
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

std::string loss_of(const Standing& s) {
  if (s.loss.half_width) return fmt::format("{:.3f} ± {:.3f} (n = {})", s.loss.mean, *s.loss.half_width, s.loss.n);
  return fmt::format("{:.3f} (n = {})", s.loss.mean, s.loss.n);
}

// A sort key: a method that lost a seed ranks below all methods that lost none.
std::pair<std::int64_t, double> rank_of(const Standing& s) { return {s.seeds - s.trained, s.loss.mean}; }

// The best of the methods that trained; null if none did.
const Standing* best_of(const Condition& condition) {
  const Standing* best = nullptr;
  for (const Standing& s : condition.standings)
    if (s.trained > 0 && (!best || rank_of(s) < rank_of(*best))) best = &s;
  return best;
}

// The comparisons with the control in words. Empty if there are no comparisons.
std::string against_control(const Condition& condition) {
  std::map<std::string, std::vector<std::string>> methods;  // by verdict
  for (const auto& [first, second, d] : condition.against_control)
    if (d.duel.seeds > 1)
      methods[d.obstacle.empty() ? verdict_words(d) : d.obstacle.substr(0, d.obstacle.find(':'))].push_back(
          fmt::format("{} ({}:{})", condition.standings[first].method, d.duel.wins, d.duel.losses));
  std::vector<std::string> parts;
  for (const auto& [verdict, some] : methods)
    parts.push_back(verdict != "no verdict" ? fmt::format("{}: {}", listed(some), verdict)
                    : some.size() > 3       ? fmt::format("no verdict on {} methods", some.size())
                                            : "no verdict on " + listed(some));
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

std::string Standing::lost_words() const {
  std::vector<std::string> words;
  for (const auto& [n, what] : {std::pair(diverged, "diverged"),
                                {stopped, "hopeless"},
                                {none_trained ? 0 : seeds - trained - diverged - stopped, "did not train"}})
    if (n > 0) words.push_back(fmt::format("{} of {} {}", n, seeds, what));
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string sentence(const Condition& condition, const Judging& how) {
  const Standing* const best = best_of(condition);
  std::vector<std::pair<std::string, std::vector<std::string>>> rest;  // methods by what is said about them
  for (const Standing& s : condition.standings) {
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
  for (const auto& [words, methods] : rest) text += fmt::format("; {}: {}", listed(methods), words);
  return text + "." + (best ? against_control(condition) : "");
}

const Condition& leading(const std::vector<Condition>& conditions) {
  return *std::ranges::min_element(conditions, {}, [](const Condition& c) {
    const Standing* const best = best_of(c);
    return std::tuple(-c.depth, !best, best ? rank_of(*best) : std::pair<std::int64_t, double>());
  });
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
