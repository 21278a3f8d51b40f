// report.html, and the table of methods by depth on the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/report/input.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The contents of the report of a study. Loss curves show the values that trials traced as "loss".
ReportInput report_input(const StudyResults& results);

// The report as one HTML file (page.h) and its figures. All contents are computed from the input. All text is escaped.
Report render_report(const ReportInput& input);

// The report of a study: render_report(report_input(results)).
Report results_report(const StudyResults& results);

// A table of the trials for a terminal, with a line for each method, depth and learning rate. The table is at most 100
// columns wide unless numbers are unusually long. The columns are the training loss and the score of the problem. If
// the chance level is known, the table marks methods near chance, as the report does. `colour` adds ANSI colours.
std::string results_table(const std::vector<TrialResult>& trials, const Judging& how, bool colour);

}  // namespace plumb::lab
