#include "experiments/passport/records.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/record/csv.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr double nan = unknown;

double geometric_mean(const std::vector<double>& values) {
  return std::ranges::find(values, 0.0) != values.end() ? 0 : log_mean(0, values).y;
}

std::string short_value(double v) { return std::isfinite(v) ? fmt::format("{:.2g}", v) : "–"; }

}  // namespace

std::string PassportArm::label() const { return fmt::format("{} depth {} seed {}", gate, depth, seed); }

std::vector<std::string> PassportRecord::findings() const {
  return step == 0 ? warnings(passport) : std::vector<std::string>();
}

BlockFigures block_figures(const LayerStats& passport, std::int64_t block) {
  double ratios = 0, squares = 0, count = 0;
  for (const BranchStats& row : passport.branches)
    if (row.block == block) ratios += row.ratio, squares += row.grad_norm * row.grad_norm, ++count;
  return {ratios / count, std::sqrt(squares)};
}

std::string to_json(const PassportRecord& r) {
  Json o{{"step", r.step},
         {"loss", r.loss},
         {"grad_norm", r.grad_norm}};  // nlohmann-json writes non-finite numbers as null
  if (r.jacobian) {
    o["jacobian"] = r.jacobian->value;
    o["jacobian_error"] = r.jacobian->standard_error;
    o["jacobian_exact"] = r.jacobian->exact;
  }
  o["passport"] = Json::parse(to_json(r.passport));
  return o.dump();
}

std::vector<PassportRecord> passport_records(const StudyResults& results) {
  const auto number = [](const Json& json) { return json.is_null() ? nan : json.get<double>(); };
  std::vector<PassportRecord> records;
  for (const Record& trial : results.records) {
    for (const std::string& text : trial.attachments) {
      const Json o = Json::parse(text);
      PassportRecord r{.trial = {trial.point.get<std::string>("gate"), trial.point.get<std::int64_t>("depth"),
                                 static_cast<std::uint64_t>(trial.seed())},
                       .step = o.at("step"),
                       .loss = number(o.at("loss")),
                       .grad_norm = number(o.at("grad_norm")),
                       .passport = passport_from_json(o.at("passport").dump())};
      if (o.contains("jacobian"))
        r.jacobian = {number(o.at("jacobian")), number(o.at("jacobian_error")), o.at("jacobian_exact")};
      records.push_back(std::move(r));
    }
    if (trial.status == Status::diverged && !trial.attachments.empty())
      records.back().divergence = fmt::format("diverged at step {:.0f}: {}", trial.value("diverged_at"), trial.reason);
  }
  return records;
}

std::string format_passports(const std::vector<PassportRecord>& records) {
  std::vector<std::string> header{"gate", "depth", "seed", "step", "block", "branch", "norm"};
  header.insert(header.end(), branch_columns().begin(), branch_columns().end());
  CsvTable table(header);
  for (const PassportRecord& r : records)
    for (const BranchStats& row : r.passport.branches) {
      table.cell(std::string_view(r.trial.gate))
          .cell(r.trial.depth)
          .cell(static_cast<std::int64_t>(r.trial.seed))
          .cell(r.step)
          .cell(row.block);
      table.cell(std::string_view(row.branch)).cell(std::string_view(nn::name(row.norm)));
      for (const std::string& column : branch_columns()) table.cell(value_of(row, column));
      table.end_row();
    }
  return table.text();
}

std::vector<PassportGroup> passport_groups(const std::vector<PassportRecord>& records, Moment moment) {
  std::vector<PassportGroup> groups;
  for (const PassportRecord& r : records) {
    const bool later = std::ranges::any_of(
        records, [&](const PassportRecord& other) { return other.trial == r.trial && other.step > r.step; });
    if (moment == Moment::fresh ? r.step != 0 : r.step == 0 || later) continue;
    auto group = std::ranges::find_if(
        groups, [&](const PassportGroup& g) { return g.gate == r.trial.gate && g.depth == r.trial.depth; });
    if (group == groups.end()) group = groups.insert(groups.end(), {r.trial.gate, r.trial.depth});
    group->seeds.push_back(&r);
  }
  std::ranges::stable_sort(groups, {}, &PassportGroup::depth);
  return groups;
}

PassportSummary summarize(const PassportGroup& group) {
  PassportSummary s{};
  const auto mean = [&](auto&& value) {
    std::vector<double> values;
    for (const PassportRecord* r : group.seeds) values.push_back(value(r->passport));
    return geometric_mean(values);
  };
  // The smallest or largest value of an optional number, over the branches that have it.
  const auto extreme = [&](std::optional<double> BranchStats::*member, auto&& better) {
    double best = nan;
    for (const PassportRecord* r : group.seeds)
      for (const BranchStats& row : r->passport.branches)
        if (const std::optional<double> v = row.*member; v && !(better(best, *v))) best = *v;
    return best;
  };
  const std::int64_t depth = group.depth;
  s.mean_square = mean([](const LayerStats& p) { return p.branches.back().mean_square; });
  s.predicted = mean([](const LayerStats& p) { return p.branches.back().predicted_mean_square; });
  const std::int64_t places[] = {0, depth / 2, depth - 1};
  for (int i = 0; i < 3; ++i) s.ratio[i] = mean([&](const LayerStats& p) { return block_figures(p, places[i]).ratio; });
  for (int i = 0; i < 2; ++i)
    s.grad_norm[i] = mean([&](const LayerStats& p) { return block_figures(p, places[2 * i]).grad_norm; });
  s.entropy = extreme(&BranchStats::relative_entropy, std::less_equal<>());
  s.largest_logit = extreme(&BranchStats::largest_logit, std::greater_equal<>());
  std::vector<double> losses;
  for (const PassportRecord* r : group.seeds) losses.push_back(r->loss);
  s.loss = geometric_mean(losses);
  std::vector<double> jacobians;
  double error = 0;
  for (const PassportRecord* r : group.seeds)
    if (r->jacobian) {
      jacobians.push_back(r->jacobian->value);
      error = std::max(error, r->jacobian->standard_error);
    }
  if (!jacobians.empty()) {
    const Summary over_seeds = summarize(jacobians);
    s.jacobian = over_seeds.mean;
    s.jacobian_error =
        std::max(error, over_seeds.deviation.value_or(0) / std::sqrt(static_cast<double>(jacobians.size())));
  }
  for (const PassportRecord* r : group.seeds)
    for (const std::string& finding : r->findings())
      if (std::ranges::find(s.findings, finding) == s.findings.end()) s.findings.push_back(finding);
  return s;
}

namespace {

std::string table_of(const std::vector<PassportGroup>& groups, const std::string& title, bool fresh, bool colour) {
  using enum TextTable::Align;
  TextTable table;
  table.column("gate", left);
  for (const char* head : {"depth", "stream", "law", "g/x first", "middle", "last", "grad first", "last"})
    table.column(head, right);
  for (const char* head : fresh ? std::vector{"J^2"} : std::vector{"entropy", "logit", "loss"})
    table.column(head, right);
  table.column("", left);
  for (const PassportGroup& g : groups) {
    const PassportSummary s = summarize(g);
    std::vector<std::string> row{shortened(g.gate, 20),    std::to_string(g.depth),     short_value(s.mean_square),
                                 short_value(s.predicted), short_value(s.ratio[0]),     short_value(s.ratio[1]),
                                 short_value(s.ratio[2]),  short_value(s.grad_norm[0]), short_value(s.grad_norm[1])};
    if (fresh)
      row.push_back(short_value(s.jacobian.value_or(nan)));
    else
      row.insert(row.end(), {short_value(s.entropy), short_value(s.largest_logit), short_value(s.loss)});
    row.push_back(s.findings.empty() ? "" : "!");
    table.row(std::move(row), s.findings.empty() ? "" : "31");
  }
  return title + "\n" + table.text(colour);
}

}  // namespace

std::string passport_table(const std::vector<PassportRecord>& records, bool colour) {
  const std::vector<PassportGroup> fresh = passport_groups(records, Moment::fresh),
                                   last = passport_groups(records, Moment::last);
  std::string text;
  if (!fresh.empty()) text += table_of(fresh, "At init", true, colour);
  if (!last.empty()) text += "\n" + table_of(last, "At the last passport", false, colour);
  if (!fresh.empty())
    text +=
        "\nstream: measured mean square of the stream after the last block; law: its prediction from the first block;\n"
        "g/x: norm of the term that a branch adds, divided by the norm of the stream, mean over a block's branches;\n"
        "grad: gradient norm of a block's branches; J^2: mean squared singular value of the Jacobian\n";
  std::string findings;
  for (const PassportGroup& g : fresh)
    for (const std::string& finding : summarize(g).findings)
      findings += fmt::format("! {} depth {}: {}\n", g.gate, g.depth, finding);
  for (const PassportRecord& r : records)
    if (!r.divergence.empty()) findings += fmt::format("! {}: {}\n", r.trial.label(), r.divergence);
  return text + (findings.empty() ? "" : "\n" + findings);
}

}  // namespace plumb::lab
