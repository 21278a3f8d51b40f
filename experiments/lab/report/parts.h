// The pieces that reports put together.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/plot/text.h"
#include "experiments/lab/report/input.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// The groups of a study by ascending depth, then rate, then first appearance.
std::vector<TrialGroup> groups_by_depth(const std::vector<TrialResult>& trials);

// The <table> of the report.
std::string html_table(const std::vector<TrialGroup>& groups, const ReportInput& input);
// The <table> of comparisons with the control; empty where there is none, or one seed alone.
std::string html_comparisons(const std::vector<Condition>& conditions);

// The methods under each condition by training loss, the deepest condition first, and with several rates the largest
// depth alone; none where there is nothing to rank.
std::vector<DotPlot> rankings(const std::vector<Condition>& conditions, std::int64_t classes,
                              const std::vector<Reference>& references = {});
// Methods by depths (and rates); none for a single condition or method.
std::optional<HeatMap> overview(const std::vector<Condition>& conditions, std::int64_t classes);

// Geometric mean of positive values with its interval: the arithmetic of a log axis.
PlotPoint log_mean(double x, const std::vector<double>& values);
// One y range for all, so that plots compare at a glance; wide intervals may leave it.
void share_log_range(std::vector<Plot>& plots);

std::vector<Plot> loss_plots(const ReportInput& input);
std::vector<Plot> accuracy_plots(const ReportInput& input);
std::vector<Plot> ratio_plots(const ReportInput& input);
std::vector<Plot> gate_plots(const ReportInput& input);  // empty where no method has gate parameters
// The same against the step: the mean over blocks and branches. Empty where fewer than three steps were logged.
std::vector<Plot> gate_step_plots(const ReportInput& input);

}  // namespace plumb::lab
