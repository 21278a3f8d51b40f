#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/svg_parts.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {
namespace {

// The number of decimals in columns of plain measures, such as losses. The number is three, or up to six if a mean
// would have fewer than two digits.
int plain_decimals(const std::vector<TrialGroup>& groups, const std::vector<Measure>& measures) {
  int decimals = 3;
  for (const TrialGroup& g : groups)
    for (const Measure& m : measures)
      if (const Summary s = g.summary(m.name); m.unit == Unit::plain && s.n > 0 && s.mean != 0)
        while (decimals < 6 && std::abs(s.mean) < 10 * std::pow(10.0, -decimals)) ++decimals;
  return decimals;
}

std::string mean_text(const Summary& s, int decimals, double factor) {
  return s.n == 0 ? "–" : fmt::format("{:.{}f}", factor * s.mean, decimals);
}

std::string interval_text(const Summary& s, int decimals, double factor) {
  if (s.half_width) return fmt::format("± {:.{}f}", factor * *s.half_width, decimals);
  return s.n == 1 ? "n = 1" : "";
}

std::string rate_text(const TrialGroup& g) { return g.point.find("lr") ? fmt::format("{}", g.lr()) : "–"; }

std::string html_pair(const Summary& s, int decimals, double factor, bool intervals) {
  std::string cells = fmt::format(R"(<td class="num">{}</td>)", mean_text(s, decimals, factor));
  if (intervals) cells += fmt::format(R"(<td class="interval">{}</td>)", interval_text(s, decimals, factor));
  return cells;
}

}  // namespace

std::string outcome_words(const TrialGroup& g, const Chance& chance) {
  if (!near_chance(g, chance)) return outcome(g);
  const std::string words = outcome(g, "near chance");
  if (words == "ok") return "near chance";
  return words.find("near chance") != words.npos ? words : "near chance; " + words;
}

std::vector<TrialGroup> groups_by_depth(const std::vector<TrialResult>& trials) {
  std::vector<TrialGroup> groups = group_trials(trials);
  std::stable_sort(groups.begin(), groups.end(), [](const TrialGroup& a, const TrialGroup& b) {
    return std::pair(a.depth(), a.lr()) < std::pair(b.depth(), b.lr());
  });
  return groups;
}

std::string html_table(const std::vector<TrialGroup>& groups, const StudyResults& results) {
  const std::vector<std::string> further = further_columns(results);
  const Chance& chance = results.judging.chance;
  const int decimals = plain_decimals(groups, results.judging.measures);
  const auto any = [&](auto&& has) { return std::ranges::any_of(groups, has); };
  const bool intervals = any([&](const TrialGroup& g) {
    return std::ranges::any_of(results.judging.measures,
                               [&](const Measure& m) { return g.summary(m.name).half_width.has_value(); });
  });
  const bool depths = any([](const TrialGroup&g) { return g.depth() > 0; }),
             rates = any([](const TrialGroup&g) { return g.lr() > 0; });
  struct Column {
    std::string title, value;
    int decimals;
    double factor;
  };
  std::vector<Column> columns;
  for (const Measure& m : results.judging.measures)
    if (groups.empty() || any([&](const TrialGroup& g) { return g.summary(m.name).n > 0; }) || further.empty())
      columns.push_back(m.unit == Unit::fraction ? Column{m.title + ", %", m.name, 1, 100}
                                                 : Column{m.title, m.name, decimals, 1});
  const char* span = intervals ? R"( colspan="2")" : "";
  const char* gap = intervals ? R"(<td class="interval"></td>)" : "";
  std::string html =
      fmt::format(R"(<table class="results"><thead><tr><th>{}</th>)", escape_markup(series_name(results)));
  if (depths) html += R"(<th class="num">depth</th>)";
  if (rates) html += R"(<th class="num">lr</th>)";
  html += R"(<th class="num">n</th>)";
  for (const Column& c : columns) html += fmt::format(R"(<th class="num"{}>{}</th>)", span, escape_markup(c.title));
  for (const std::string& name : further) html += fmt::format(R"(<th class="num">{}</th>)", escape_markup(name));
  html += "<th>outcome</th></tr></thead><tbody>";
  if (chance.known() && !columns.empty()) {
    html += R"(<tr class="chance"><td>chance</td><td></td>)" + std::string(depths ? "<td></td>" : "") +
            (rates ? "<td></td>" : "");
    for (const Column& c : columns) {
      const std::optional<double> level = chance_of(results.judging.references, c.value);
      html += level ? fmt::format(R"(<td class="num">{:.{}f}</td>{})", c.factor * *level, c.decimals, gap)
                    : std::string("<td></td>") + gap;
    }
    for (std::size_t i = 0; i < further.size(); ++i) html += "<td></td>";
    html += fmt::format("<td>{}</td></tr>", escape_markup(chance.text));
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const TrialGroup& g = groups[i];
    const bool new_block = i > 0 && (groups[i - 1].depth() != g.depth() || groups[i - 1].lr() != g.lr());
    html += fmt::format("<tr{}{}><td>{}</td>", new_block ? R"( class="rule")" : "", svg::belongs_to(g.method),
                        escape_markup(g.method));
    if (depths) html += fmt::format(R"(<td class="num">{}</td>)", g.depth());
    if (rates) html += fmt::format(R"(<td class="num">{}</td>)", rate_text(g));
    html += fmt::format(R"(<td class="num">{}</td>)", g.averaged().size());
    for (const Column& c : columns) html += html_pair(g.summary(c.value), c.decimals, c.factor, intervals);
    for (const std::string& name : further)
      html += fmt::format(R"(<td class="num">{}</td>)", to_string(g.summary(name)));
    const char* kind = g.count(Status::diverged) > 0 || g.count(Status::failed) > 0 ? "bad"
                       : near_chance(g, chance)                                     ? "warn"
                                                                                    : "";
    html += fmt::format(R"(<td class="outcome {}">{}</td></tr>)", kind, escape_markup(outcome_words(g, chance)));
  }
  return html + "</tbody></table>";
}

TextTable comparisons_table(const std::vector<Condition>& conditions) {
  using enum TextTable::Align;
  const auto rate_of = [](const Condition& p, const Standing& s) { return s.rate ? s.rate : p.rate; };
  const bool depths = std::ranges::any_of(conditions, [](const Condition&p) { return p.depth > 0; }),
             rates = std::ranges::any_of(
                 conditions, [&](const Condition&p) { return rate_of(p, p.standings.front()).has_value(); });
  TextTable table;
  table.column("method", left);
  if (depths) table.column("depth", right);
  if (rates) table.column("lr", right);
  for (const char* title : {"seeds", "won:lost", "difference"}) table.column(title, right);
  table.column("95 %", left);
  for (const char* title : {"E", "needs"}) table.column(title, right);
  for (const char* title : {"stands at neighbours", "verdict"}) table.column(title, left);
  for (const Condition& condition : conditions)
    for (const auto& [first, second, d] : condition.against_control) {
      if (d.duel.seeds < 2) continue;
      const Standing& s = condition.standings[first];
      const std::optional<double> rate = rate_of(condition, s);
      std::vector<std::string> row{s.method};
      if (depths) row.push_back(condition.depth > 0 ? std::to_string(condition.depth) : "–");
      if (rates) row.push_back(rate ? fmt::format("{}", *rate) : "–");
      row.insert(row.end(),
                 {std::to_string(d.duel.seeds), fmt::format("{}:{}", d.duel.wins, d.duel.losses),
                  d.median.n == 0 ? "–" : fmt::format("{:+.3g}", d.median.value),
                  d.median.low ? fmt::format("{:+.3g} to {:+.3g}", *d.median.low, *d.median.high) : "",
                  fmt::format("{:.3g}", d.better == Side::none ? d.evidence : d.at_all_rates),
                  fmt::format("{:.3g}", d.needs), d.lost == Side::none ? "" : std::string(enum_name(d.neighbours)),
                  d.obstacle.empty() ? verdict_words(d) : d.obstacle});
      table.row(std::move(row));
    }
  return table;
}

}  // namespace plumb::lab
