// What a person reads after a study: report.html and the table at the end of a run.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/report/input.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// Of any study: its trial_results(); losses are what it traced as "loss".
ReportInput report_input(const StudyResults& results);

// One HTML file that holds all it needs and opens in any browser without network, in light and dark mode, from 390 px
// up; what its script adds (a filter, sorting, highlighting) it can be read without. Everything in it is computed from
// the input; its text is escaped.
Report render_report(const ReportInput& input);

// Of any study: report.html and its figures.
Report results_report(const StudyResults& results);

// The trials for a terminal, one line each (gate, depth, lr), at most 100 columns wide as long as the numbers are of
// common size. Says as the report does which are near chance, ln(classes); none for fewer than two classes. `colour`
// adds ANSI colours.
std::string results_table(const std::vector<TrialResult>& trials, std::int64_t classes, bool colour);

}  // namespace plumb::lab
