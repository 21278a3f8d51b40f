#include "experiments/lab/report/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/lab/record/csv.h"

namespace plumb::lab {

Section rates_section(const std::vector<RateChoice>& rates, const std::string& chosen_by, const std::string& caption) {
  using enum TextTable::Align;
  Section section{.title = "Learning rates, " + chosen_by, .caption = caption};
  if (rates.empty()) return section;
  for (const auto& [axis, value] : rates.front().cell.entries()) section.table.column(axis, left);
  const std::string name = rates.front().by.is_training_loss() ? "loss" : rates.front().by.value;
  for (const std::string& title : {std::string("lr"), "best " + name, std::string("at lr"), std::string("tried")})
    section.table.column(title, right);
  section.table.column("note", left);
  for (const RateChoice& choice : rates) {
    const auto& [best, value] = *std::ranges::min_element(choice.tried, {}, [&](const auto& tried) {
      return std::isfinite(tried.second) ? choice.by.cost(tried.second) : INFINITY;
    });
    std::vector<std::string> row;
    for (const auto& [axis, at] : choice.cell.entries()) row.push_back(to_string(at));
    row.push_back(choice.unread ? "–" : fmt::format("{}", choice.rate));
    row.push_back(std::isfinite(value) ? fmt::format("{:.4g}", value) : "none");
    row.push_back(fmt::format("{}", best));
    row.push_back(std::to_string(choice.tried.size()));
    row.emplace_back(choice.unread           ? "all rates give the same loss: the body does not read its learning rate"
                     : !choice.blind.empty() ? "no rate trains: " + choice.blind
                     : choice.passed_over    ? fmt::format("{} is at the edge", *choice.passed_over)
                     : choice.at_bound       ? "at the bound of the search"
                                             : "");
    section.table.row(std::move(row));
  }
  return section;
}

std::string rates_csv(const StudyResults& r) {
  const std::vector<RateChoice>& rates = r.judging.rates;
  const RateCriterion by = rates.empty() ? RateCriterion() : rates.front().by;
  std::vector<std::string> axes = r.axes;
  std::erase(axes, "lr"), std::erase(axes, "seed");
  std::vector<std::string> header = axes;
  header.insert(header.end(), {"lr", "seed", "trial", by.value, "chosen_lr"});
  CsvTable table(header);
  const auto row = [&](const RateChoice& choice, const Point& cell, double rate, std::uint64_t seed,
                       std::string_view trial, double value) {
    table.cells(cell, axes).cell(rate).cell(static_cast<std::int64_t>(seed)).cell(trial).cell(value);
    table.cell(choice.unread ? unknown : choice.rate).end_row();
  };
  for (const RateChoice& choice : rates) {
    for (const auto& [rate, value] : choice.tried) row(choice, choice.cell, rate, choice.seed, "search", value);
    for (const Record& n : r.neighbours)
      if (n.point.contains(choice.cell))
        row(choice, cell_of(n.point), n.point.get<double>("lr"), static_cast<std::uint64_t>(n.seed()), "neighbour",
            n.outcome(by.value));
  }
  return table.text();
}

}  // namespace plumb::lab
