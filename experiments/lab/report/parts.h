// The tables and charts of a report.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "experiments/lab/plot/draw.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/plot/text_table.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// The groups of trials by ascending depth, then learning rate, then first appearance.
std::vector<TrialGroup> groups_by_depth(const std::vector<TrialResult>& trials);

// The outcome of a group in words. The words also tell whether the loss of the group is near chance.
std::string outcome_words(const TrialGroup& group, const Chance& chance);
// The <table> of all groups.
std::string html_table(const std::vector<TrialGroup>& groups, const StudyResults& results);
// The comparisons with the control. Empty if there is no control, or if no method has two seeds.
TextTable comparisons_table(const std::vector<Condition>& conditions);

// A dot plot for each condition, which ranks its methods by training loss. The deepest condition comes first. If there
// are several learning rates, only the largest depth has plots. Conditions with fewer than two methods, or without a
// loss, have no plot.
std::vector<DotPlot> rankings(const std::vector<Condition>& conditions, const Chance& chance,
                              const std::vector<Reference>& references = {});
// A heat map of training losses by method and condition. Empty for a single condition or a single method.
std::optional<HeatMap> overview(const std::vector<Condition>& conditions, const Chance& chance);

// The geometric mean of positive values and its interval, for a logarithmic axis.
PlotPoint log_mean(double x, const std::vector<double>& values);
// Gives all plots with a logarithmic y axis the same y range, so that the plots are easy to compare. Wide intervals may
// exceed the range.
void share_log_range(std::vector<Plot>& plots);

// The values that trials traced as "loss" against the step, a plot for each condition.
std::vector<Plot> loss_plots(const StudyResults& results);
// The score of the problem against the depth, a plot for each learning rate.
std::vector<Plot> score_plots(const StudyResults& results, const Measure& score);
// Values of a trial by block or by step.
using LayerLine = std::map<double, double>;
using LayerLineOf = std::function<LayerLine(const std::vector<StepStats>& steps)>;
// Charts of layer statistics: one for each condition, with a line for each method. A point is the mean over the seeds
// that trained, or over all seeds if none trained: the geometric mean on a logarithmic y axis.
struct LayerChart {
  std::string id;           // of the figures; the condition and the branch are appended
  std::string branch = {};  // the kind of branch that the charts are about; empty: all kinds
  PlotAxis x, y;
  LayerLineOf line;           // the values of a trial, whose logged steps are not empty
  LayerLineOf expected = {};  // values that a theory predicts, drawn as a thin line
};
// The plots, condition by condition. Conditions and methods without values are left out. Logarithmic y axes have one
// range in all plots.
std::vector<Plot> layer_plots(const StudyResults& results, const std::vector<LayerChart>& charts);

// The ratios of branch and stream norms against the block at the first or the last logged step, a plot for each
// condition and branch.
enum class LoggedStep { first, last };
std::vector<Plot> ratio_plots(const StudyResults& results, LoggedStep at = LoggedStep::last);
// The largest gate factors against the block, a plot for each condition and branch. Empty if no method has gate
// factors.
std::vector<Plot> gate_plots(const StudyResults& results);
// The largest gate factors against the step, as means over blocks and branches. Empty for fewer than three logged
// steps.
std::vector<Plot> gate_step_plots(const StudyResults& results);

}  // namespace plumb::lab
