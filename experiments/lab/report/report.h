// report.html, and its text for the terminal.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/plot/figure.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The report of a study: its page, of which all text is escaped, and results_text() (text.h) for the terminal. The page
// begins with the answer and the main figure: the charts of the first section (Section), or else the heat map and the
// rankings of methods.
Report results_report(const StudyResults& results);

}  // namespace plumb::lab
