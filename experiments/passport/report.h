// The page a person reads after the passport program.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/report/report.h"
#include "experiments/passport/records.h"

namespace plumb::lab {

struct PassportReport {
  std::string title = {};
  NamedTexts settings = {}, notes = {};
  std::vector<PassportRecord> records = {};
};

// One HTML file as render_report's.
Report render_passports(const PassportReport& input);

}  // namespace plumb::lab
