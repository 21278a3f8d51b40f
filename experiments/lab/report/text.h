// The results of a study as text for a terminal and as results.md.
#pragma once

#include <string>

#include "experiments/lab/report/results.h"

namespace plumb::lab {

// Text for a terminal: a table of means over seeds with 95 % t intervals, then findings_text().
std::string results_text(const StudyResults& results, bool colour);
// The claims with their verdicts, and the tables in the sections of the study.
std::string findings_text(const StudyResults& results, bool colour);
// The text of results.md: the table, the claims, the sections and the verdicts in Markdown.
std::string results_markdown(const StudyResults& results);

}  // namespace plumb::lab
