#include "experiments/lab/report/text.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
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
    row.push_back(outcome(group));
    table.row(std::move(row), outcome(group) == "ok" ? "32" : "31");
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

}  // namespace

std::string results_text(const StudyResults& r, bool colour) {
  const auto [shown, left_out] = shown_values(r);
  std::string text = r.records.empty()   ? "No trial has ended yet.\n"
                     : r.axes.size() > 1 ? table_of(r, shown).text(colour)
                                         : list_of(r, shown);
  if (left_out > 0 && !r.records.empty())
    text +=
        fmt::format("{} more value{} in {}\n", left_out, left_out == 1 ? "" : "s", (r.folder / "results.csv").string());
  if (r.axes.size() > 1 && std::ranges::any_of(r.groups(), [](const TrialGroup& g) { return g.trials.size() > 1; }))
    text +=
        "Means over the n seeds that trained (if none trained: that ended), ± half the width of the 95 % Student-t "
        "interval.\n";
  return text + findings_text(r, colour) + fmt::format("\ndata: {}\n", r.data.text);
}

std::string findings_text(const StudyResults& r, bool colour) {
  std::string text;
  for (const JudgedClaim& c : r.claims)
    text += fmt::format("\n{} ({})\n  {}: {}\n", c.text, c.source, c.verdict_words(), c.why());
  if (const std::string about = about_claims(r.claims, r.judging); !about.empty()) text += "\n" + about + "\n";
  if (const std::string saturated = saturation(r.trials, r.judging.measures); !saturated.empty())
    text += "\n" + saturated + "\n";
  for (const Section& section : r.sections)
    if (!section.table.empty()) text += fmt::format("\n{}\n{}", section.title, section.table.text(colour));
  return text;
}

std::string results_markdown(const StudyResults& r) {
  std::string text = (r.question.empty() ? "" : r.question + "\n\n") + table_of(r, shown_values(r).first).markdown();
  if (!r.claims.empty()) {
    TextTable table;
    for (const char* column : {"claim", "source", "measure", "verdict", "why"})
      table.column(column, TextTable::Align::left);
    for (const JudgedClaim& c : r.claims)
      table.row({c.text, c.source, c.measure, fmt::format("**{}**", c.verdict_words()), c.why()});
    text += "\n" + table.markdown();
    if (const std::string about = about_claims(r.claims, r.judging); !about.empty()) text += "\n" + about + "\n";
  }
  for (const Section& section : r.sections)
    if (!section.table.empty())
      text += fmt::format("\n{}. {}\n\n{}", section.title, section.caption, section.table.markdown());
  const std::vector<Condition>& judged = r.conditions;
  if (!judged.empty()) text += "\n";
  for (const Condition& condition : judged) text += fmt::format("- {}\n", sentence(condition, r.judging));
  if (const std::string saturated = saturation(r.trials, r.judging.measures); !saturated.empty())
    text += "\n" + saturated + "\n";
  return escape_markdown(text);
}

}  // namespace plumb::lab
