// The contents of a report.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// All contents of a report.
struct ReportInput {
  std::string title = {};
  std::string question = {};  // the question of the study; empty if there is none
  std::vector<JudgedClaim> claims = {};
  std::vector<Section> sections = {};      // sections of the study, shown before the sections of the library
  std::string series = "gate";             // heading of the column of methods
  std::vector<std::string> columns = {};   // measured values with a column, besides the measures of the problem
  NamedTexts settings = {};                // methods and settings of the study, as names and values
  Judging judging = {};                    // how methods are compared; without a chance level, none is drawn
  std::vector<Condition> conditions = {};  // verdicts on the trials
  std::vector<TrialResult> trials = {};    // methods appear in the order of these trials
  std::vector<LossPoint> losses = {};
  std::vector<LayerPoint> layers = {};
  NamedTexts notes = {};  // provenance: version, commit, device, command line
};

}  // namespace plumb::lab
