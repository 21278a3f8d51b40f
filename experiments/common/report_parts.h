// The pieces that reports put together.
#pragma once

#include <string>
#include <vector>

#include "experiments/common/plot_text.h"
#include "experiments/common/report.h"
#include "experiments/common/statistics.h"
#include "experiments/common/svg_plot.h"

namespace plumb::lab {

// A mean training loss of at least this share of ln(classes) counts as "near chance".
inline constexpr double near_chance_share = 0.95;

// ln(classes), or infinity for fewer than two classes: nothing is near that.
double chance_loss(std::int64_t classes);
bool near_chance(const ArmGroup& group, std::int64_t classes);

// What became of the arms of a group, in words: "ok", "diverged at step 37", "2 of 3 diverged at steps 37 to 41".
std::string outcome(const ArmGroup& group);

// The groups of a study by ascending depth, then rate, then first appearance.
std::vector<ArmGroup> groups_by_depth(const std::vector<ArmResult>& arms);

// One sentence (plain text) for each depth, ascending: what trained best as far as the intervals allow to say, what stayed near chance,
// what diverged. Each gate is judged at its best learning rate.
std::vector<std::string> verdicts(const std::vector<ArmGroup>& groups, std::int64_t classes);

// The <table> of the report.
std::string html_table(const std::vector<ArmGroup>& groups, const ReportInput& input);

// Geometric mean of positive values with its interval: the arithmetic of a log axis.
PlotPoint log_mean(double x, const std::vector<double>& values);
// One y range for all, so that plots compare at a glance; wide intervals may leave it.
void share_log_range(std::vector<Plot>& plots);

std::vector<Plot> loss_plots(const ReportInput& input);
std::vector<Plot> accuracy_plots(const ReportInput& input);
std::vector<Plot> ratio_plots(const ReportInput& input);
std::vector<Plot> gate_plots(const ReportInput& input);  // empty where no method has gate parameters

}  // namespace plumb::lab
