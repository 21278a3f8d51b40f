#include "experiments/lab/report/results.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/stats/summary.h"

namespace plumb::lab {
namespace {

bool is_time(const std::string& name) { return name == "images_per_second" || name == "seconds"; }

struct Shown {
  std::vector<std::string> names;
  std::size_t left_out = 0;
};

// What the table has columns for: what was asked for, or the first few that were measured.
Shown shown(const StudyResults& r) {
  std::vector<std::string> measured = r.columns;
  for (const std::string& name : measured_names(r.records))
    if (std::ranges::find(measured, name) == measured.end()) measured.push_back(name);
  std::erase_if(measured, [](const std::string& name) { return name == "diverged_at" || is_time(name); });
  Shown s{r.show.empty() ? measured : r.show};
  if (r.show.empty() && s.names.size() > shown_unasked) s.names.resize(shown_unasked);
  s.left_out = static_cast<std::size_t>(
      std::ranges::count_if(measured, [&](const std::string& name) { return std::ranges::find(s.names, name) == s.names.end(); }));
  return s;
}

std::string cell_of(const StudyResults::Group& group, const std::string& name) {
  Summary s = group.over_ok(name);
  if (name != "val_accuracy" || s.n == 0) return to_string(s);
  return fmt::format("{:.1f}{} %", 100 * s.mean, s.half_width ? fmt::format(" ± {:.1f}", 100 * *s.half_width) : "");
}

// "ok", "diverged", "1 of 3 diverged"
std::string outcome(const StudyResults::Group& group) {
  std::string text;
  for (const Status status : {Status::diverged, Status::hopeless, Status::failed}) {
    const auto n = std::ranges::count(group.arms, status, &Record::status);
    if (n > 0)
      text += fmt::format("{}{}{}", text.empty() ? "" : "; ", group.arms.size() == 1 ? "" : fmt::format("{} of {} ", n, group.arms.size()),
                          to_string(status));
  }
  return text.empty() ? "ok" : text;
}

TextTable table_of(const StudyResults& r, const std::vector<std::string>& names) {
  using enum TextTable::Align;
  TextTable table;
  for (const std::string& axis : r.axes)
    if (axis != "seed") table.column(axis, left);
  for (const std::string& name : names) table.column(name, right);
  table.column("n", right);
  table.column("outcome", left);
  for (const StudyResults::Group& group : r.groups()) {
    std::vector<std::string> row;
    for (const auto& [axis, value] : group.point.entries()) row.push_back(to_string(value));
    for (const std::string& name : names) row.push_back(cell_of(group, name));
    row.push_back(std::to_string(std::ranges::count(group.arms, Status::ok, &Record::status)));
    row.push_back(outcome(group));
    table.row(std::move(row), outcome(group) == "ok" ? "32" : "31");
  }
  return table;
}

// Of a study whose only axis is the seed: a line a value.
std::string list_of(const StudyResults& r, const std::vector<std::string>& names) {
  std::string text;
  const StudyResults::Group group{{}, r.groups().front().arms};
  for (const std::string& name : names) {
    const bool logged = std::ranges::any_of(group.arms, [&](const Record* s) {
      return s->status == Status::ok && std::ranges::find(s->values, name, &Values::value_type::first) != s->values.end();
    });
    const Summary s = group.over_ok(name);
    const auto number = [](double v, int digits) { return std::isfinite(v) ? fmt::format("{:.{}g}", v, digits) : "not finite"; };
    if (!logged) {
      if (std::ranges::any_of(group.arms, [](const Record* seed) { return seed->status == Status::ok; }))
        text += fmt::format("{:<20} {:>12}\n", name, "never logged");
      continue;
    }
    text += fmt::format("{:<20} {:>12}{}  n = {}\n", name, number(s.mean, 5), s.half_width ? fmt::format(" ± {:.3g}", *s.half_width) : "", s.n);
  }
  std::vector<std::string> diverged;
  for (const Record* s : group.arms)
    if (s->status == Status::diverged) diverged.push_back(fmt::format("seed {} at step {:.0f}", s->seed(), s->value("diverged_at")));
  if (!diverged.empty())
    text += fmt::format("{:<20} {} of {} seeds: {}\n", "diverged", diverged.size(), group.arms.size(), fmt::join(diverged, ", "));
  return text;
}

}  // namespace

Summary StudyResults::Group::over_ok(const std::string& value) const {
  std::vector<double> values;
  for (const Record* r : arms)
    if (r->status == Status::ok) values.push_back(r->value(value));
  return summarize(values);
}

std::vector<StudyResults::Group> StudyResults::groups(std::string_view across) const {
  std::vector<Group> groups;
  for (const Record& r : records) {
    const Point place = r.point.without("seed").without(across);
    const auto group = std::ranges::find(groups, place, &Group::point);
    (group == groups.end() ? groups.emplace_back(Group{place, {}}) : *group).arms.push_back(&r);
  }
  return groups;
}

std::string results_text(const StudyResults& r, bool colour) {
  const Shown s = shown(r);
  std::string text = r.records.empty() ? "No run has ended yet.\n" : r.axes.size() > 1 ? table_of(r, s.names).text(colour) : list_of(r, s.names);
  if (s.left_out > 0 && !r.records.empty())
    text += fmt::format("{} more value{} in {}\n", s.left_out, s.left_out == 1 ? "" : "s", (r.folder / "results.csv").string());
  if (r.axes.size() > 1 && std::ranges::any_of(r.groups(), [](const StudyResults::Group& g) { return g.arms.size() > 1; }))
    text += "Means over the n seeds that ended ok, ± half the width of the 95 % Student-t interval.\n";
  if (const std::string chose = who_chose(r.judging); !chose.empty()) text += chose + "\n";
  return text + findings_text(r, colour) + fmt::format("\ndata: {}\n", r.data.text);
}

std::string findings_text(const StudyResults& r, bool colour) {
  std::string text;
  for (const auto& [claim, source, result] : r.claims)
    text += fmt::format("\n{} ({})\n  {}: {}\n", claim, source, to_string(result.verdict), result.why());
  for (const Section& section : r.sections)
    if (!section.table.empty()) text += fmt::format("\n{}\n{}", section.title, section.table.text(colour));
  return text;
}

std::string results_markdown(const StudyResults& r) {
  std::string text = (r.question.empty() ? "" : r.question + "\n\n") + table_of(r, shown(r).names).markdown();
  if (!r.claims.empty()) {
    TextTable table;
    for (const char* column : {"claim", "source", "verdict", "why"}) table.column(column, TextTable::Align::left);
    for (const auto& [claim, source, result] : r.claims) table.row({claim, source, fmt::format("**{}**", to_string(result.verdict)), result.why()});
    text += "\n" + table.markdown();
  }
  for (const Section& section : r.sections)
    if (!section.table.empty()) text += fmt::format("\n{}. {}\n\n{}", section.title, section.caption, section.table.markdown());
  const std::vector<Place> judged = judged_places(r);
  if (!judged.empty()) text += "\n";
  for (const Place& place : judged) text += fmt::format("- {}\n", sentence(place, r.judging));
  if (const std::string chose = who_chose(r.judging); !chose.empty()) text += "\n" + chose + "\n";
  return text;
}

namespace {

// The axes that together name the series of a report.
std::vector<std::string> series_axes(const StudyResults& r) {
  std::vector<std::string> series;
  for (const std::string& axis : r.axes)
    if (axis != "depth" && axis != "lr" && axis != "seed") series.push_back(axis);
  return series;
}

class MethodNames {
 public:
  explicit MethodNames(const StudyResults& r) : study_(r.name) {
    for (const Record& record : r.records) {
      const Point method = method_of(record.point);
      for (const auto& [axis, value] : method.entries()) {
        const auto known = std::ranges::find(first_, axis, &Point::Entry::first);
        if (known == first_.end())
          first_.emplace_back(axis, value);
        else if (!same(known->second, value) && std::ranges::find(varying_, axis) == varying_.end())
          varying_.push_back(axis);
      }
    }
  }
  std::string operator()(const Point& point) const {
    Point rest = method_of(point);
    if (!varying_.empty())
      for (const auto& [axis, value] : point.entries())
        if (std::ranges::find(varying_, axis) == varying_.end()) rest = rest.without(axis);
    return rest.entries().empty() ? study_ : rest.label();
  }

 private:
  static Point method_of(const Point& point) {
    const Point rest = point.without("seed").without("lr");
    const AxisValue* depth = point.find("depth");
    return depth && std::holds_alternative<std::int64_t>(*depth) ? rest.without("depth") : rest;
  }

  std::string study_;
  std::vector<Point::Entry> first_;
  std::vector<std::string> varying_;
};

std::vector<std::string> further_columns(const StudyResults& r) {
  std::vector<std::string> names = shown(r).names;
  std::erase_if(names, [](const std::string& name) { return name == "train_loss" || name == "val_loss" || name == "val_accuracy"; });
  return names;
}

}  // namespace

std::string method_name(const StudyResults& results, const Point& point) { return MethodNames(results)(point); }

std::vector<ArmResult> arm_results(const StudyResults& r) {
  const std::vector<std::string> further = further_columns(r);
  const MethodNames namer(r);
  std::vector<ArmResult> arms;
  for (const Record& record : r.records) {
    ArmResult& a = arms.emplace_back(ArmResult{.seed = static_cast<std::uint64_t>(record.seed()), .status = record.status, .steps = record.steps});
    if (record.point.find("lr")) a.lr = record.point.get<double>("lr");
    if (const AxisValue* depth = record.point.find("depth"); depth && std::holds_alternative<std::int64_t>(*depth))
      a.depth = std::get<std::int64_t>(*depth);
    a.gate = namer(record.point);
    const auto measured = [&](const char* name) {
      const double value = record.value(name);
      return std::isfinite(value) ? std::optional(value) : std::nullopt;
    };
    a.train_loss = measured("train_loss"), a.val_loss = measured("val_loss"), a.val_accuracy = measured("val_accuracy");
    if (const auto step = measured("diverged_at")) a.diverged_at = static_cast<std::int64_t>(*step);
    for (const std::string& name : further) a.further.push_back(record.value(name));
  }
  return arms;
}

ReportInput report_input(const StudyResults& r) {
  const std::vector<std::string> series = series_axes(r);
  ReportInput input{.title = r.name,
                    .question = r.question,
                    .claims = r.claims,
                    .sections = r.sections,
                    .series = series.size() == 1 ? series.front() : "arm",
                    .columns = further_columns(r),
                    .settings = r.settings,
                    .judging = r.judging,
                    .arms = arm_results(r),
                    .layers = layer_points(r),
                    .notes = r.notes};
  for (std::size_t i = 0; i < r.records.size(); ++i)
    for (const std::string& line : r.records[i].metrics) {
      const auto json = nlohmann::json::parse(line);
      const ArmResult& a = input.arms[i];
      if (const auto loss = json.find("loss"); loss != json.end())
        input.losses.push_back({a.gate, a.depth, a.lr, a.seed, json["step"], loss->is_null() ? unknown : loss->get<double>()});
    }
  return input;
}

std::vector<Place> judged_places(const StudyResults& r) { return places(arm_results(r), r.judging); }

Report results_report(const StudyResults& results) { return render_report(report_input(results)); }

}  // namespace plumb::lab
