#include "experiments/lab/report/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/report/references.h"
#include "experiments/lab/report/saturation.h"

namespace plumb::lab {
namespace {

std::string cell_of(const TrialGroup& group, const std::string& name, Unit unit) {
  Summary s = group.summary(name);
  if (unit == Unit::plain || s.n == 0) return to_string(s);
  return fmt::format("{:.1f}{} %", 100 * s.mean, s.half_width ? fmt::format(" ± {:.1f}", 100 * *s.half_width) : "");
}

TextTable table_of(const StudyResults& r, const std::vector<std::string>& names) {
  using enum TextTable::Align;
  TextTable table;
  for (const std::string& axis : r.axes)
    if (axis != "seed") table.column(axis, left);
  for (const std::string& name : names) table.column(name, right);
  table.column("n", right);
  table.column("outcome", left);
  for (const TrialGroup& group : r.groups()) {
    std::vector<std::string> row;
    for (const std::string& axis : r.axes)
      if (axis != "seed") row.push_back(group.point.find(axis) ? to_string(*group.point.find(axis)) : "–");
    for (const std::string& name : names) row.push_back(cell_of(group, name, unit_of(r.judging.measures, name)));
    row.push_back(std::to_string(group.averaged().size()));
    const std::string words = outcome_words(group, r.judging.chance);
    row.push_back(words);
    table.row(std::move(row), words == "ok" ? "32" : words.ends_with("near chance") ? "33" : "31");
  }
  return table;
}

// The results of a study whose only axis is the seed. Each value has a line.
std::string list_of(const StudyResults& r, const std::vector<std::string>& names) {
  std::string text;
  const TrialGroup group = r.groups().front();
  for (const std::string& name : names) {
    const bool logged = std::ranges::any_of(group.trials, [&](const TrialResult* s) {
      return s->status == Status::ok &&
             std::ranges::find(s->values, name, &Values::value_type::first) != s->values.end();
    });
    const Summary s = group.summary(name);
    const auto number = [](double v, int digits) {
      return std::isfinite(v) ? fmt::format("{:.{}g}", v, digits) : "not finite";
    };
    if (!logged) {
      if (std::ranges::any_of(group.trials, [](const TrialResult* seed) { return seed->status == Status::ok; }))
        text += fmt::format("{:<20} {:>12}\n", name, "never logged");
      continue;
    }
    text += fmt::format("{:<20} {:>12}{}  n = {}\n", name, number(s.mean, 5),
                        s.half_width ? fmt::format(" ± {:.3g}", *s.half_width) : "", s.n);
  }
  std::vector<std::string> diverged;
  for (const TrialResult* s : group.trials)
    if (s->status == Status::diverged)
      diverged.push_back(fmt::format("seed {} at step {}", s->seed(), s->diverged_at().value_or(s->steps)));
  if (!diverged.empty())
    text += fmt::format("{:<20} {} of {} seeds: {}\n", "diverged", diverged.size(), group.trials.size(),
                        fmt::join(diverged, ", "));
  return text;
}

// The first claim that is decided, and how many are.
std::string decided_claims(const StudyResults& r) {
  if (r.judging.old_trials) return "No claim is judged: the trials are older than the rule of judging.";
  const JudgedClaim* first = nullptr;
  const auto rank = [](const JudgedClaim& c) { return std::pair(!c.post_hoc, c.is_primary); };
  std::map<Verdict, std::size_t> counts;
  for (const JudgedClaim& c : r.claims)
    if (c.verdict != Verdict::undecided && ++counts[c.verdict] && (!first || rank(c) > rank(*first))) first = &c;
  const std::string all = fmt::format("{} claim{}", r.claims.size(), r.claims.size() == 1 ? "" : "s");
  if (!first) return fmt::format("Decided: none of {}, after {} seeds.", all, r.judging.seeds.size());
  std::size_t decided = 0;
  std::vector<std::string> verdicts;
  for (const auto& [verdict, n] : counts) decided += n, verdicts.push_back(fmt::format("{} {}", n, enum_name(verdict)));
  const auto place = std::ranges::find(first->results, first->verdict, &ClaimResult::verdict);
  const ClaimResult& result = place == first->results.end() ? first->results.front() : *place;
  const Difference& d = result.difference;
  return fmt::format("{}: {}, {}{}:{}, {}; decided: {} of {} ({}).", first->text, first->verdict_words(),
                     first->results.size() == 1 ? "" : result.at.label() + " ", d.duel.wins, d.duel.losses,
                     effect_words(d.median, result.higher ? -1 : 1), decided, all, fmt::join(verdicts, ", "));
}

}  // namespace

std::string answer_of(const StudyResults& r) {
  if (r.trials.empty()) return fmt::format("No {}trial has ended yet.", r.judging.own_rates ? "judged " : "");
  for (const Section& section : r.sections)
    if (!section.answer.empty()) return section.answer;
  if (!listed_claims(r).empty()) return decided_claims(r);
  return r.conditions.empty() ? "" : sentence(leading(r.conditions), r.judging);
}

std::span<const JudgedClaim> listed_claims(const StudyResults& r) {
  return r.trials.empty() || r.judging.seeds.size() == 1 ? std::span<const JudgedClaim>() : r.claims;
}

std::vector<std::string> further_sentences(const StudyResults& r) {
  std::vector<std::string> sentences;
  for (const Condition& condition : r.conditions) sentences.push_back(sentence(condition, r.judging));
  std::erase(sentences, answer_of(r));
  std::ranges::reverse(sentences);
  return sentences;
}

std::vector<std::string> remarks(const StudyResults& r) {
  const bool compares = !r.claims.empty() || (!r.conditions.empty() && r.conditions.back().standings.size() > 1);
  std::vector<std::string> lines{
      r.judging.seeds.size() == 1 && compares
          ? "One seed gives no verdicts; --resume --seeds 0..6 or --resume --until-decided trains further seeds."
          : about_claims(r.claims, r.judging),
      saturation(r.trials, r.judging.measures), known_levels(r)};
  std::erase(lines, "");
  return lines;
}

std::string results_text(const StudyResults& r, bool colour) {
  const auto [shown, left_out] = shown_values(r);
  std::string text = answer_of(r);
  if (!text.empty()) text += r.records.empty() ? "\n" : "\n\n";
  if (!r.records.empty()) text += r.axes.size() > 1 ? table_of(r, shown).text(colour) : list_of(r, shown);
  if (left_out > 0 && !r.records.empty())
    text +=
        fmt::format("{} more value{} in {}\n", left_out, left_out == 1 ? "" : "s", (r.folder / "results.csv").string());
  if (r.axes.size() > 1 && std::ranges::any_of(r.groups(), [](const TrialGroup& g) { return g.trials.size() > 1; }))
    text +=
        "Means over the n seeds that trained (if none trained: that ended), ± half the width of the 95 % Student-t "
        "interval.\n";
  if (std::ranges::any_of(r.groups(), [&](const TrialGroup& g) { return near_chance(g, r.judging.chance); }))
    text += fmt::format("near chance: {}.\n", near_chance_rule(r.trials, r.judging.chance));
  for (const JudgedClaim& c : listed_claims(r))
    text += fmt::format("\n{} ({})\n  {}: {}\n", c.text, c.source, c.verdict_words(), c.why());
  for (const std::string& line : remarks(r)) text += "\n" + line + "\n";
  for (const Section& section : r.sections)
    if (!section.table.empty()) text += fmt::format("\n{}\n{}", section.title, section.table.text(colour));
  return text + fmt::format("\ndata: {}\n", r.data.text);
}

std::string results_markdown(const StudyResults& r) {
  std::string text;
  for (const std::string& line : {answer_of(r), r.question})
    if (!line.empty()) text += line + "\n\n";
  text += table_of(r, shown_values(r).first).markdown();
  if (!listed_claims(r).empty()) {
    TextTable table;
    for (const char* column : {"claim", "source", "measure", "verdict", "why"})
      table.column(column, TextTable::Align::left);
    for (const JudgedClaim& c : listed_claims(r))
      table.row({c.text, c.source, c.measure, fmt::format("**{}**", c.verdict_words()), c.why()});
    text += "\n" + table.markdown();
  }
  for (const Section& section : r.sections)
    if (!section.table.empty())
      text += fmt::format("\n{}. {}\n\n{}", section.title, section.caption, section.table.markdown());
  const std::vector<std::string> sentences = further_sentences(r);
  if (!sentences.empty()) text += fmt::format("\n- {}\n", fmt::join(sentences, "\n- "));
  for (const std::string& line : remarks(r)) text += "\n" + line + "\n";
  return escape_markdown(text);
}

}  // namespace plumb::lab
