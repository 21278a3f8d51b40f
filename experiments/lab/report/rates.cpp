#include "experiments/lab/report/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/record/csv.h"

namespace plumb::lab {
namespace {

constexpr double told = 0.02;  // a search whose values differ by a smaller share does not tell which rate is best

std::string value_text(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "none"; }

// Whether no finite value of a search is so much worse than the chosen one that it tells rates apart. A loss counts
// from the entropy of its targets.
bool is_flat(const RateChoice& choice, double chosen) {
  return std::ranges::all_of(choice.tried, [&](const auto& tried) {
    return !std::isfinite(tried.second) ||
           choice.by.cost(tried.second - chosen) <= told * (std::abs(chosen) - choice.target_entropy);
  });
}

}  // namespace

Section rates_section(const std::vector<RateChoice>& rates, const std::string& chosen_by, const std::string& caption) {
  using enum TextTable::Align;
  Section section{.title = "Learning rates, " + chosen_by, .caption = caption};
  if (rates.empty()) return section;
  for (const auto& [axis, value] : rates.front().cell.entries()) section.table.column(axis, left);
  const RateCriterion& by = rates.front().by;
  const bool by_loss = by.is_training_loss();
  section.table.column("lr", right);
  section.table.column(by_loss ? "loss" : by.value, right);
  for (const char* title : {"at the next lower lr", "at the next higher lr", "trials"})
    section.table.column(title, right);
  section.table.column("note", left);
  for (const RateChoice& choice : rates) {
    std::vector<std::string> row;
    for (const auto& [axis, value] : choice.cell.entries()) row.push_back(to_string(value));
    const auto chosen = std::ranges::find(choice.tried, choice.rate, &std::pair<double, double>::first);
    internal_check(chosen != choice.tried.end(), "the chosen learning rate {} was not tried", choice.rate);
    row.push_back(choice.unread ? "–" : fmt::format("{}", choice.rate));
    row.push_back(value_text(chosen->second));
    row.push_back(chosen == choice.tried.begin() ? "" : value_text(std::prev(chosen)->second));
    row.push_back(std::next(chosen) == choice.tried.end() ? "" : value_text(std::next(chosen)->second));
    row.push_back(std::to_string(choice.tried.size()));
    row.emplace_back(choice.unread ? "all rates give the same loss: the body does not read its learning rate"
                     : !std::isfinite(chosen->second)
                         ? fmt::format("no rate gave a finite {}", by_loss ? "loss" : "value")
                     : is_flat(choice, chosen->second)
                         ? fmt::format("the {} of all rates are within 2 %", by_loss ? "losses" : "values")
                     : choice.at_bound    ? "at the bound of the search"
                     : choice.passed_over ? fmt::format("{} is at the edge", *choice.passed_over)
                                          : "");
    section.table.row(std::move(row), choice.at_bound ? "31" : "");
  }
  return section;
}

std::string rates_csv(const std::vector<RateChoice>& rates) {
  std::vector<std::string> axes;
  if (!rates.empty())
    for (const auto& [axis, value] : rates.front().cell.entries()) axes.push_back(axis);
  std::vector<std::string> header = axes;
  header.insert(header.end(), {"lr", rates.empty() ? RateCriterion().value : rates.front().by.value, "chosen"});
  CsvTable table(header);
  for (const RateChoice& choice : rates)
    for (const auto& [rate, loss] : choice.tried) {
      table.cells(choice.cell, axes).cell(rate).cell(loss);
      table.cell(std::string_view(rate == choice.rate && !choice.unread ? "yes" : "no"));
      table.end_row();
    }
  return table.text();
}

}  // namespace plumb::lab
