#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/common/report_parts.h"

namespace plumb::lab {
namespace {

// Decimals of a column of losses: three, and more where a mean would lose its digits.
int loss_decimals(const std::vector<ArmGroup>& groups) {
  int decimals = 3;
  for (const ArmGroup& g : groups)
    for (const Summary* s : {&g.train_loss, &g.val_loss})
      while (decimals < 6 && s->n > 0 && s->mean != 0 && std::abs(s->mean) < 10 * std::pow(10.0, -decimals)) ++decimals;
  return decimals;
}

bool any_interval(const std::vector<ArmGroup>& groups) {
  return std::any_of(groups.begin(), groups.end(),
                     [](const ArmGroup& g) { return g.train_loss.half_width || g.val_loss.half_width || g.val_accuracy.half_width; });
}

std::string mean_text(const Summary& s, int decimals, double factor) { return s.n == 0 ? "–" : fmt::format("{:.{}f}", factor * s.mean, decimals); }

std::string interval_text(const Summary& s, int decimals, double factor) {
  if (s.half_width) return fmt::format("± {:.{}f}", factor * *s.half_width, decimals);
  return s.n == 1 ? "n = 1" : "";
}

// The outcome, and whether it is near chance.
std::string verdict_words(const ArmGroup& g, std::int64_t classes) {
  const std::string words = outcome(g);
  if (!near_chance(g, classes)) return words;
  return words == "ok" ? "near chance" : "near chance; " + words;
}

std::string html_pair(const Summary& s, int decimals, double factor, bool intervals) {
  std::string cells = fmt::format(R"(<td class="num">{}</td>)", mean_text(s, decimals, factor));
  if (intervals) cells += fmt::format(R"(<td class="interval">{}</td>)", interval_text(s, decimals, factor));
  return cells;
}

}  // namespace

std::vector<ArmGroup> groups_by_depth(const std::vector<ArmResult>& arms) {
  std::vector<ArmGroup> groups = group_arms(arms);
  std::stable_sort(groups.begin(), groups.end(),
                   [](const ArmGroup& a, const ArmGroup& b) { return std::pair(a.depth, a.lr) < std::pair(b.depth, b.lr); });
  return groups;
}

std::string outcome(const ArmGroup& g) {
  std::vector<std::int64_t> steps;
  for (const ArmResult& a : g.arms)
    if (a.status == Status::diverged && a.diverged_at) steps.push_back(*a.diverged_at);
  const auto counted = [all = g.arms.size()](std::int64_t n, const char* what) {
    return all == 1 ? std::string(what) : fmt::format("{} of {} {}", n, all, what);
  };
  std::string text;
  if (g.diverged > 0) text = counted(g.diverged, "diverged");
  if (!steps.empty()) {
    const auto [first, last] = std::minmax_element(steps.begin(), steps.end());
    text += *first == *last ? fmt::format(" at step {}", *first) : fmt::format(" at steps {} to {}", *first, *last);
  }
  if (g.failed > 0) text += (text.empty() ? "" : "; ") + counted(g.failed, "failed");
  return text.empty() ? "ok" : text;
}

std::string html_table(const std::vector<ArmGroup>& groups, std::int64_t classes) {
  const bool intervals = any_interval(groups), has_chance = classes >= 2;
  const int decimals = loss_decimals(groups);
  const char* span = intervals ? R"( colspan="2")" : "";
  std::string html = fmt::format(
      R"(<table class="results"><thead><tr><th>gate</th><th class="num">depth</th><th class="num">lr</th><th class="num">n</th>)"
      R"(<th class="num"{0}>train loss</th><th class="num"{0}>val loss</th><th class="num"{0}>val accuracy, %</th><th>outcome</th></tr></thead><tbody>)",
      span);
  if (has_chance) {
    const double loss = chance_loss(classes), accuracy = 100.0 / static_cast<double>(classes);
    const char* gap = intervals ? R"(<td class="interval"></td>)" : "";
    html += fmt::format(
        R"(<tr class="chance"><td>chance</td><td></td><td></td><td></td><td class="num">{0:.{1}f}</td>{2}<td class="num">{0:.{1}f}</td>{2}<td class="num">{3:.1f}</td>{2}<td>ln {4} = {0:.3f}</td></tr>)",
        loss, decimals, gap, accuracy, classes);
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ArmGroup& g = groups[i];
    const bool new_block = i > 0 && (groups[i - 1].depth != g.depth || groups[i - 1].lr != g.lr);
    const std::string words = verdict_words(g, classes);
    const char* kind = g.diverged > 0 || g.failed > 0 ? "bad" : near_chance(g, classes) ? "warn" : "";
    html += fmt::format(
        R"(<tr{}><td>{}</td><td class="num">{}</td><td class="num">{}</td><td class="num">{}</td>{}{}{}<td class="outcome {}">{}</td></tr>)",
        new_block ? R"( class="rule")" : "", escape_markup(g.gate), g.depth, g.lr, g.ok, html_pair(g.train_loss, decimals, 1, intervals),
        html_pair(g.val_loss, decimals, 1, intervals), html_pair(g.val_accuracy, 1, 100, intervals), kind, escape_markup(words));
  }
  return html + "</tbody></table>";
}

std::string results_table(const std::vector<ArmResult>& arms, std::int64_t classes, bool colour) {
  const std::vector<ArmGroup> groups = groups_by_depth(arms);
  const bool intervals = any_interval(groups);
  const int decimals = loss_decimals(groups);
  enum class Align { left, right };
  std::vector<std::pair<std::string, Align>> heads = {
      {"gate", Align::left}, {"depth", Align::right}, {"lr", Align::right}, {"train loss", Align::right}};
  if (intervals) heads.emplace_back("95 %", Align::left);
  heads.emplace_back("val acc", Align::right);
  heads.emplace_back("status", Align::left);

  std::vector<std::vector<std::string>> rows(1);
  for (const auto& [name, align] : heads) rows[0].push_back(name);
  for (const ArmGroup& g : groups) {
    std::vector<std::string> row = {shortened(g.gate, 20), std::to_string(g.depth), fmt::format("{}", g.lr), mean_text(g.train_loss, decimals, 1)};
    if (intervals) row.push_back(interval_text(g.train_loss, decimals, 1));
    row.push_back(g.val_accuracy.n == 0 ? "–" : fmt::format("{:.1f} %", 100 * g.val_accuracy.mean));
    row.push_back(shortened(verdict_words(g, classes), 33));
    rows.push_back(std::move(row));
  }

  std::vector<std::size_t> widths(heads.size());
  for (const auto& row : rows)
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], letters(row[c]));
  std::string text;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t c = 0; c < heads.size(); ++c) {
      const std::string gap(widths[c] - letters(rows[r][c]), ' ');
      std::string cell = heads[c].second == Align::right ? gap + rows[r][c] : rows[r][c];
      const bool last = c + 1 == heads.size();
      if (colour && r > 0 && last) {
        const ArmGroup& g = groups[r - 1];
        const bool all_ok = g.ok == static_cast<std::int64_t>(g.arms.size());
        cell = (!all_ok ? "\x1b[31m" : near_chance(g, classes) ? "\x1b[33m" : "\x1b[32m") + cell + "\x1b[0m";
      }
      line += (c > 0 ? "  " : "") + cell + (heads[c].second == Align::left && !last ? gap : "");
    }
    text += (colour && r == 0 ? "\x1b[1m" + line + "\x1b[0m" : line) + "\n";
  }
  if (!groups.empty() && !intervals) text += "One seed an arm (n = 1): no intervals.\n";
  if (std::ranges::any_of(groups, [&](const ArmGroup& g) { return near_chance(g, classes); }))
    text += fmt::format("near chance: mean training loss at or above {:.0f} % of ln {} = {:.3f}.\n", 100 * near_chance_share, classes,
                        chance_loss(classes));
  return text;
}

}  // namespace plumb::lab
