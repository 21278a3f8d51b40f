#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "experiments/lab/report/curves.h"
#include "experiments/lab/report/parts.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {
namespace {

using DepthAndRate = std::pair<std::int64_t, double>;  // depth, lr

// A group of trials with the number of its method. The number determines colour and marker.
struct StyledGroup : TrialGroup {
  int style = 0;
};

// The trials of a report by condition (depth and learning rate) and method.
class StudyGroups {
 public:
  explicit StudyGroups(const StudyResults& results) : own_rates_(results.judging.own_rates) {
    for (const TrialGroup& g : group_trials(results.trials)) {
      depths_.insert(g.depth());
      rates_.insert(rate_of(g));
      const int style = styles_.try_emplace(g.method, static_cast<int>(styles_.size())).first->second;
      by_condition_[{g.depth(), rate_of(g)}].push_back({g, style});
    }
    for (auto& [condition, groups] : by_condition_) std::ranges::stable_sort(groups, {}, &StyledGroup::style);
  }

  // The groups of each condition. Groups are in the order in which their methods first appear in the report.
  const std::map<DepthAndRate, std::vector<StyledGroup>>& by_condition() const { return by_condition_; }
  const std::set<std::int64_t>& depths() const { return depths_; }
  const std::set<double>& rates() const { return rates_; }
  // The learning rate of the condition of a group. If each method has its own rate, all rates form one condition.
  double rate_of(const TrialGroup& group) const { return own_rates_ ? 0 : group.lr(); }
  int style(const std::string& method) const { return styles_.at(method); }

  std::string name(const DepthAndRate& c) const {
    const std::string depth = c.first > 0 ? fmt::format("depth {}", c.first) : "";
    return rates_.size() > 1 ? fmt::format("{}{}lr {}", depth, depth.empty() ? "" : ", ", c.second) : depth;
  }

 private:
  bool own_rates_;
  std::map<std::string, int> styles_;
  std::set<std::int64_t> depths_;
  std::set<double> rates_;
  std::map<DepthAndRate, std::vector<StyledGroup>> by_condition_;
};

PlotPoint with_interval(double x, const Summary& s) {
  PlotPoint p{.x = x, .y = s.mean};
  if (s.half_width) p.low = s.low(), p.high = s.high();
  return p;
}

// The trials over which a mean is taken: those of tables, or all trials if none ended ok.
std::vector<const TrialResult*> averaged(const TrialGroup& group) {
  const std::vector<const TrialResult*> trials = group.averaged();
  return trials.empty() ? group.trials : trials;
}

std::string death(const TrialResult& a) {
  return fmt::format("{}, seed {}: diverged{}", a.method, a.seed(),
                     a.diverged_at() ? fmt::format(" at step {}", *a.diverged_at()) : "");
}

using Curve = std::vector<PlotPoint>;

// The means of `every` consecutive logged losses. Without this averaging the noise of minibatches would hide the trend.
Curve binned(const Curve& points, std::size_t every) {
  Curve curve;
  for (std::size_t i = 0; i < points.size(); i += every) {
    std::vector<double> steps, losses;
    for (std::size_t k = i; k < std::min(i + every, points.size()); ++k) {
      steps.push_back(points[k].x);
      losses.push_back(points[k].y);
    }
    curve.push_back({.x = std::floor(summarize(steps).mean), .y = summarize(losses).mean});
  }
  return curve;
}

Curve mean_over_seeds(const std::vector<Curve>& curves) {
  std::map<double, std::vector<double>> at;
  for (const Curve& c : curves)
    for (const PlotPoint& p : c) at[p.x].push_back(p.y);
  Curve mean;
  for (const auto& [x, values] : at) mean.push_back(with_interval(x, summarize(values)));
  return mean;
}

using LossLog = std::map<const TrialResult*, Curve>;

// The losses that each trial traced.
LossLog traced_losses(const StudyResults& results) {
  LossLog log;
  for (std::size_t i = 0; i < results.records.size(); ++i)
    for (const StepValues& step : results.records[i].metrics)
      if (const auto loss = std::ranges::find(step.values, "loss", &Values::value_type::first);
          loss != step.values.end())
        log[&results.trials[i]].push_back({.x = static_cast<double>(step.step), .y = loss->second});
  return log;
}

// Adds a curve of the mean over the trials of which tables show the mean, and a thin curve for each other trial. A
// cross marks where a trial diverged.
void add_loss_curves(Plot& plot, const StyledGroup& group, const LossLog& log, std::size_t every) {
  const std::vector<const TrialResult*> of_mean = group.averaged();
  std::vector<Curve> together;
  std::vector<PlotSeries> others;
  for (const TrialResult* a : group.trials) {
    const auto points = log.find(a);
    Curve curve = points == log.end() ? Curve() : binned(points->second, every);
    if (a->status == Status::diverged) {
      PlotMark mark{.x = static_cast<double>(a->diverged_at().value_or(a->steps)),
                    .style = group.style,
                    .title = death(*a),
                    .of = group.method};
      for (const PlotPoint& p : curve)
        if (std::isfinite(p.y)) mark.y = p.y;
      plot.marks.push_back(std::move(mark));
    }
    if (std::ranges::find(of_mean, a) != of_mean.end())
      together.push_back(std::move(curve));
    else
      others.push_back({.name = group.method, .style = group.style, .points = std::move(curve), .thin = true});
  }
  if (!together.empty())
    plot.series.push_back({.name = group.method, .style = group.style, .points = mean_over_seeds(together)});
  plot.series.insert(plot.series.end(), others.begin(), others.end());
}

// Gives all plots the same range of losses. The range starts at 0 if the lowest loss is near 0. The loss of an
// exploding trial leaves the range at the top, so that this loss does not flatten the other curves.
void share_loss_range(std::vector<Plot>& plots, const StudyResults& results, const LossLog& log) {
  const double chance = results.judging.chance.loss;
  double lowest = std::numeric_limits<double>::infinity(), highest = 0, highest_mean = 0, last_step = 1;
  for (const TrialResult& a : results.trials) last_step = std::max(last_step, static_cast<double>(a.steps));
  for (const auto& [trial, points] : log)
    for (const PlotPoint& p : points) last_step = std::max(last_step, p.x);
  for (const Plot& plot : plots)
    for (const PlotSeries& s : plot.series)
      for (const PlotPoint& p : s.points) {
        if (!std::isfinite(p.y)) continue;
        lowest = std::min(lowest, p.y), highest = std::max(highest, p.y);
        if (!s.thin) highest_mean = std::max(highest_mean, p.y);
      }
  if (std::isfinite(chance))
    highest = std::min(std::max(highest, chance), std::clamp(highest_mean, 1.25 * chance, 2 * chance));
  const double room = 0.05 * (highest - lowest);
  for (Plot& plot : plots)
    if (highest > 0 && highest > lowest)
      plot.x.low = 0, plot.x.high = last_step, plot.y.low = lowest >= 0 && lowest < 0.35 * highest ? 0 : lowest - room,
      plot.y.high = highest + room;
}

// ", attention branch" after the name of a condition.
std::string branch_title(const std::string& branch) {
  return branch.empty()     ? ""
         : branch == "attn" ? "attention branch"
         : branch == "mlp"  ? "MLP branch"
                            : branch + " branch";
}

// The kinds of branches with statistics, such as "attn" and "mlp".
std::set<std::string> branches_of(const StudyResults& results) {
  std::set<std::string> branches;
  for (const Attached& attached : results.attached)
    for (const StepStats& step : attached.layers)
      for (const BranchStats& row : step.layers.branches) branches.insert(row.branch);
  return branches;
}

// The charts of a value of a branch at a logged step against the block, one for each condition and branch.
std::vector<Plot> branch_plots(const StudyResults& results, const std::string& id, const std::string& y_title,
                               LoggedStep at, const std::function<std::optional<double>(const BranchStats&)>& value) {
  std::vector<LayerChart> charts;
  for (const std::string& branch : branches_of(results))
    charts.push_back({.id = id,
                      .branch = branch,
                      .x = {.title = "block"},
                      .y = {.title = y_title, .log = true},
                      .line = [branch, at, value](const std::vector<StepStats>& steps) {
                        LayerLine line;
                        for (const BranchStats& row :
                             (at == LoggedStep::first ? steps.front() : steps.back()).layers.branches)
                          if (const std::optional<double> v = value(row); v && row.branch == branch)
                            line[static_cast<double>(row.block)] = *v;
                        return line;
                      }});
  return layer_plots(results, charts);
}

// The line of a chart for the trials of a group.
PlotSeries layer_series(const StudyResults& results, const StyledGroup& group, const LayerChart& chart, bool expected) {
  PlotSeries series{.name = group.count(Status::ok) > 0 ? group.method : group.method + " (diverged)",
                    .style = group.style,
                    .thin = expected,
                    .kind = expected ? "expected" : "mean"};
  std::map<double, std::vector<double>> values_at;
  for (const TrialResult* trial : averaged(group)) {
    const auto place = static_cast<std::size_t>(trial - results.trials.data());
    if (place >= results.attached.size() || results.attached[place].layers.empty()) continue;
    const LayerLineOf& line = expected ? chart.expected : chart.line;
    for (const auto& [x, y] : line(results.attached[place].layers)) values_at[x].push_back(y);
  }
  for (const auto& [x, values] : values_at)
    series.points.push_back(chart.y.log ? log_mean(x, values) : with_interval(x, summarize(values)));
  if (std::ranges::none_of(series.points, [](const PlotPoint& p) { return std::isfinite(p.y); })) series.points.clear();
  return series;
}

}  // namespace

PlotPoint log_mean(double x, const std::vector<double>& values) {
  std::vector<double> logs;
  for (double v : values) logs.push_back(v > 0 ? std::log(v) : std::nan(""));
  PlotPoint p = with_interval(x, summarize(logs));
  p.y = std::exp(p.y), p.low = std::exp(p.low), p.high = std::exp(p.high);
  return p;
}

void share_log_range(std::vector<Plot>& plots) {
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Plot& plot : plots)
    for (const PlotSeries& s : plot.series)
      for (const PlotPoint& p : s.points)
        if (plot.y.log && std::isfinite(p.y) && p.y > 0) low = std::min(low, p.y), high = std::max(high, p.y);
  for (Plot& plot : plots)
    if (plot.y.log && low <= high) plot.y.low = low / 2, plot.y.high = high * 2;
}

std::vector<Plot> loss_plots(const StudyResults& results) {
  constexpr std::size_t most_points = 100;
  const double chance = results.judging.chance.loss;
  const StudyGroups study(results);
  const LossLog log = traced_losses(results);
  std::size_t longest = 1;
  for (const auto& [trial, points] : log) longest = std::max(longest, points.size());
  const std::size_t every = (longest + most_points - 1) / most_points;
  std::vector<Plot> plots;
  for (const auto& [condition, groups] : study.by_condition()) {
    Plot plot{.id = slug("loss-" + study.name(condition)),
              .title = study.name(condition),
              .x = {.title = "step"},
              .y = {.title = "training loss"}};
    plot.marks_name = "diverged";
    for (const StyledGroup& group : groups) add_loss_curves(plot, group, log, every);
    if (std::isfinite(chance)) plot.rules.push_back({chance, "chance, " + results.judging.chance.text});
    for (const Reference& r : results.judging.references)
      if (r.value == "train_loss" && !r.chance)
        plot.rules.push_back({r.level, fmt::format("{}, {:.3f}", r.name, r.level)});
    plots.push_back(std::move(plot));
  }
  share_loss_range(plots, results, log);
  return plots;
}

std::vector<Plot> score_plots(const StudyResults& results, const Measure& score) {
  const bool percent = score.unit == Unit::fraction;
  const double factor = percent ? 100 : 1;
  const StudyGroups study(results);
  const std::vector<TrialGroup> groups = group_trials(results.trials);
  std::vector<Plot> plots;
  for (double lr : study.rates()) {
    Plot plot{.id = slug(study.rates().size() > 1 ? fmt::format("{}-lr-{}", score.name, lr) : score.name),
              .title = study.rates().size() > 1 ? fmt::format("lr {}", lr) : "",
              .x = {.title = "depth (blocks, log scale)", .log = true},
              .y = {.title = score.title + (percent ? ", %" : "")}};
    for (std::int64_t depth : study.depths()) plot.x.ticks.push_back(static_cast<double>(depth));
    if (percent) plot.y.least = 0, plot.y.most = 100;
    plot.interval = PlotInterval::bars;
    plot.marks_name = "no seed finished";
    std::map<int, PlotSeries> series;
    for (const TrialGroup& g : groups) {
      if (study.rate_of(g) != lr) continue;
      const int style = study.style(g.method);
      PlotSeries& s = series.try_emplace(style, PlotSeries{.name = g.method, .style = style}).first->second;
      PlotPoint p = with_interval(static_cast<double>(g.depth()), g.summary(score.name));
      p.y *= factor, p.low *= factor, p.high *= factor;
      s.points.push_back(p);
      if (g.count(Status::ok) == 0)
        plot.marks.push_back({.x = static_cast<double>(g.depth()),
                              .style = style,
                              .title = fmt::format("{}, depth {}: {}", g.method, g.depth(), outcome(g)),
                              .of = g.method});
    }
    if (std::none_of(groups.begin(), groups.end(),
                     [&](const TrialGroup& g) { return study.rate_of(g) == lr && g.summary(score.name).n > 0; }))
      plot.y.low = 0, plot.y.high = factor;
    for (auto& [style, s] : series) {
      std::sort(s.points.begin(), s.points.end(), [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
      plot.series.push_back(std::move(s));
    }
    for (const Reference& r : results.judging.references)
      if (r.value == score.name)
        plot.rules.push_back(
            {factor * r.level, r.chance ? r.name : fmt::format("{}, {}", r.name, describe_level(score.unit, r.level))});
    plots.push_back(std::move(plot));
  }
  return plots;
}

std::vector<Plot> layer_plots(const StudyResults& results, const std::vector<LayerChart>& charts) {
  const StudyGroups study(results);
  std::vector<Plot> plots;
  for (const auto& [condition, groups] : study.by_condition())
    for (const LayerChart& chart : charts) {
      const std::string place = study.name(condition), of = branch_title(chart.branch);
      Plot plot{.id = slug(fmt::format("{}-{}{}{}", chart.id, place, of.empty() ? "" : "-", chart.branch)),
                .title = place + (place.empty() || of.empty() ? "" : ", ") + of,
                .x = chart.x,
                .y = chart.y};
      for (const StyledGroup& group : groups)
        for (const bool expected : {false, true})
          if (expected ? chart.expected : chart.line)
            if (PlotSeries series = layer_series(results, group, chart, expected); !series.points.empty())
              plot.series.push_back(std::move(series));
      if (!plot.series.empty()) plots.push_back(std::move(plot));
    }
  share_log_range(plots);
  return plots;
}

std::vector<Plot> ratio_plots(const StudyResults& results, LoggedStep at) {
  return branch_plots(results, at == LoggedStep::first ? "init-ratio" : "ratio", "‖g(x)‖ / ‖x‖, log scale", at,
                      [](const BranchStats& s) { return std::optional(s.ratio); });
}

std::vector<Plot> gate_plots(const StudyResults& results) {
  return branch_plots(results, "gate", "largest |gate factor|, log scale", LoggedStep::last,
                      [](const BranchStats& s) { return s.gate_max; });
}

std::vector<Plot> gate_step_plots(const StudyResults& results) {
  constexpr std::size_t least_steps = 3;
  if (std::ranges::none_of(results.attached, [](const Attached& a) { return a.layers.size() >= least_steps; }))
    return {};
  const auto line = [](const std::vector<StepStats>& steps) {
    LayerLine means;
    for (const auto& [step, layers] : steps) {
      std::vector<double> values;
      for (const BranchStats& row : layers.branches)
        if (row.gate_max) values.push_back(*row.gate_max);
      if (!values.empty() && std::ranges::all_of(values, [](double v) { return v > 0; }))
        means[static_cast<double>(step)] = log_mean(0, values).y;
    }
    return means;
  };
  return layer_plots(results, {{.id = "gate-steps",
                                .x = {.title = "step"},
                                .y = {.title = "largest |gate factor|, log scale", .log = true},
                                .line = line}});
}

}  // namespace plumb::lab
