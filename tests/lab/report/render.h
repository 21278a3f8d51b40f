// Renders a report from trials.
#pragma once

#include "experiments/lab/report/input.h"
#include "experiments/lab/report/report.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::test {

// The report with verdicts on its trials.
inline lab::Report render(lab::ReportInput input) {
  input.conditions = lab::conditions(input.trials, input.judging);
  return lab::render_report(input);
}

}  // namespace plumb::test
