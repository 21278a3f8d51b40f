// Renders the HTML report of the passport program.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/report.h"
#include "experiments/passport/records.h"

namespace plumb::lab {

// The input of render_passports().
struct PassportReport {
  std::string title = {};
  NamedTexts settings = {}, notes = {};
  std::vector<PassportRecord> records = {};
};

// Returns the report as one HTML file with its figures, in the same form as render_report().
Report render_passports(const PassportReport& input);

}  // namespace plumb::lab
