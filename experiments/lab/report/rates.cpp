#include "experiments/lab/report/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/record/csv.h"

namespace plumb::lab {
namespace {

constexpr double told = 1.02;  // a search whose losses differ by less does not tell which rate is best

std::string loss_text(double loss) { return std::isfinite(loss) ? fmt::format("{:.4g}", loss) : "none"; }

}  // namespace

Section rates_section(const std::vector<RateChoice>& rates, const std::string& chosen_by, const std::string& caption) {
  using enum TextTable::Align;
  Section section{.title = "Learning rates, " + chosen_by, .caption = caption};
  if (rates.empty()) return section;
  for (const auto& [axis, value] : rates.front().cell.entries()) section.table.column(axis, left);
  for (const char* title : {"lr", "loss", "at the next lower lr", "at the next higher lr", "trials"})
    section.table.column(title, right);
  section.table.column("note", left);
  for (const RateChoice& choice : rates) {
    std::vector<std::string> row;
    for (const auto& [axis, value] : choice.cell.entries()) row.push_back(to_string(value));
    const auto chosen = std::ranges::find(choice.tried, choice.rate, &std::pair<double, double>::first);
    internal_check(chosen != choice.tried.end(), "the chosen learning rate {} was not tried", choice.rate);
    row.push_back(fmt::format("{}", choice.rate));
    row.push_back(loss_text(chosen->second));
    row.push_back(chosen == choice.tried.begin() ? "" : loss_text(std::prev(chosen)->second));
    row.push_back(std::next(chosen) == choice.tried.end() ? "" : loss_text(std::next(chosen)->second));
    row.push_back(std::to_string(choice.tried.size()));
    double highest = chosen->second;
    for (const auto& [rate, loss] : choice.tried)
      if (std::isfinite(loss)) highest = std::max(highest, loss);
    row.emplace_back(!std::isfinite(chosen->second)     ? "no rate gave a finite loss"
                     : highest <= told * chosen->second ? "the losses of all rates are within 2 %"
                     : choice.at_bound                  ? "at the bound of the search"
                     : choice.passed_over               ? fmt::format("{} is at the edge", *choice.passed_over)
                                                        : "");
    section.table.row(std::move(row), choice.at_bound ? "31" : "");
  }
  return section;
}

std::string rates_csv(const std::vector<RateChoice>& rates) {
  std::vector<std::string> header;
  if (!rates.empty())
    for (const auto& [axis, value] : rates.front().cell.entries()) header.push_back(axis);
  header.insert(header.end(), {"lr", "train_loss", "chosen"});
  CsvTable table(header);
  for (const RateChoice& choice : rates)
    for (const auto& [rate, loss] : choice.tried) {
      table.cells(choice.cell).cell(rate).cell(loss).cell(std::string_view(rate == choice.rate ? "yes" : "no"));
      table.end_row();
    }
  return table.text();
}

}  // namespace plumb::lab
