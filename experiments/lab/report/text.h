// What a study found, as text: for a terminal and as results.md.
#pragma once

#include <string>

#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The table for a terminal: means over seeds with 95 % t intervals, then the findings.
std::string results_text(const StudyResults& results, bool colour);
// What was claimed and what came of it, and the study's own sections.
std::string findings_text(const StudyResults& results, bool colour);
// The same table in Markdown.
std::string results_markdown(const StudyResults& results);

}  // namespace plumb::lab
