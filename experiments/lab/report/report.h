// report.html, and the table of methods by depth on the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The report of a study: its page, of which all text is escaped, and for the terminal a table of means over seeds with
// 95 % t intervals, and findings_text() (text.h). `with_question`: whether the page begins with the question of the
// study.
Report results_report(const StudyResults& results, bool with_question = true);

// A table of the trials for a terminal, with a line for each method, depth and learning rate. The table is at most 100
// columns wide unless numbers are unusually long. The columns are the training loss and the score of the problem. If
// the chance level is known, the table marks methods near chance, as the report does. `colour` adds ANSI colours.
std::string results_table(const std::vector<TrialResult>& trials, const Judging& how, bool colour);

}  // namespace plumb::lab
