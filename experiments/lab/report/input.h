// What a report is made from.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

struct ReportInput {
  std::string title = {};
  std::string question = {};  // what the study asks; none if empty
  std::vector<JudgedClaim> claims = {};
  std::vector<Section> sections = {};      // before the library's own
  std::string series = "gate";             // what TrialResult::method is called
  std::vector<std::string> columns = {};   // further values, TrialResult::further
  NamedTexts settings = {};                // what was compared and how: name, value
  Judging judging = {};                    // no chance level is drawn for fewer than two classes
  std::vector<Condition> conditions = {};  // how the trials compare
  std::vector<TrialResult> trials = {};    // gates, depths and rates appear in this order
  std::vector<LossPoint> losses = {};
  std::vector<LayerPoint> layers = {};
  NamedTexts notes = {};  // where the numbers come from: version, commit, device, command line
};

}  // namespace plumb::lab
