#include "experiments/lab/report/curves.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/report/references.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {
namespace {

std::optional<double> number_at(const Point& point, const std::string& axis) {
  const AxisValue* value = point.find(axis);
  if (!value) return std::nullopt;
  if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<double>(*whole);
  if (const auto* number = std::get_if<double>(value)) return *number;
  return std::nullopt;
}

}  // namespace

Figure plot_of(const StudyResults& results, const Curve& curve) {
  Plot plot{.id = slug(fmt::format("{}-by-{}{}{}", curve.value, curve.axis, curve.where.entries().empty() ? "" : "-",
                                   curve.where.label())),
            .title = curve.title.empty() ? fmt::format("{} by {}", curve.value, curve.axis) : curve.title,
            .x = {.title = curve.axis},
            .y = {.title = curve.value + (curve.log_value ? ", log scale" : ""), .log = curve.log_value},
            .interval = PlotInterval::bars};
  double least = std::numeric_limits<double>::infinity(), most = 0;
  std::vector<TrialGroup> groups;
  for (const TrialGroup& group : results.groups())
    if (const auto x = number_at(group.point, curve.axis); x && group.point.contains(curve.where)) {
      if (*x > 0) least = std::min(least, *x), most = std::max(most, *x);
      groups.push_back(group);
    }
  plot.x.log = most > 20 * least;
  if (plot.x.log) plot.x.title += ", log scale";
  std::map<std::string, std::size_t> lines;
  for (const TrialGroup& group : groups) {
    Point rest = group.point.without(curve.axis);
    for (const auto& [axis, value] : curve.where.entries()) rest = rest.without(axis);
    const std::string name = rest.entries().empty() ? curve.value : rest.label();
    const double x = *number_at(group.point, curve.axis);
    const Summary s = group.summary(curve.value);
    if (s.n == 0) continue;
    const auto [line, is_new] = lines.try_emplace(name, plot.series.size());
    if (is_new) plot.series.push_back({.name = name, .style = static_cast<int>(line->second)});
    if (plot.x.log && x <= 0) {
      plot.rules.push_back({s.mean, fmt::format("{} 0{}", curve.axis, rest.entries().empty() ? "" : ", " + name),
                            static_cast<int>(line->second)});
      continue;
    }
    PlotPoint point{.x = x, .y = s.mean};
    if (s.half_width) point.low = s.low(), point.high = s.high();
    plot.series[line->second].points.push_back(point);
  }
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (PlotSeries& series : plot.series) {
    std::ranges::sort(series.points, {}, &PlotPoint::x);
    for (const PlotPoint& p : series.points) low = std::min(low, p.y), high = std::max(high, p.y);
  }
  if (unit_of(results.judging.measures, curve.value) == Unit::fraction) plot.y.least = 0, plot.y.most = 1;
  for (PlotRule& rule : rules_of(results.judging.references, curve.value, low, high))
    plot.rules.push_back(std::move(rule));
  return figure_of(plot);
}

Figure dots_of(const StudyResults& results, const std::string& value, const std::string& title,
               const std::function<std::string(const Point&)>& name) {
  DotPlot plot{.id = slug(value + "-dots"), .title = title, .x = {.title = value}};
  for (const TrialGroup& group : results.groups()) {
    const Summary s = group.summary(value);
    DotRow row{.name = name ? name(group.point) : group.point.label()};
    if (s.n > 0) row.dot.x = s.mean;
    if (s.half_width) row.dot.low = s.low(), row.dot.high = s.high();
    for (const TrialResult* trial : group.trials)
      if (s.n > 1 && trial->status == Status::ok) row.singles.push_back(trial->value(value).value_or(unknown));
    plot.rows.push_back(std::move(row));
  }
  if (unit_of(results.judging.measures, value) == Unit::fraction) plot.x.least = 0, plot.x.most = 1;
  plot.rules = rules_of(results.judging.references, value, -INFINITY, INFINITY);
  return figure_of(plot);
}

Section published_section(const StudyResults& results, const std::vector<Published>& published) {
  using enum TextTable::Align;
  Section section{
      .title = "Published results, of other data",
      .caption = "These numbers are for other data and sizes: compare the order of methods, not the numbers."};
  section.table.column("method", left);
  section.table.column("value", left);
  section.table.column("published", left);
  section.table.column("source", left);
  for (const Published& p : published)
    if (std::ranges::any_of(results.trials, [&](const TrialResult& t) { return t.point.contains(p.where); }))
      section.table.row({p.where.label(), p.value, p.figure, p.source});
  return section;
}

}  // namespace plumb::lab
