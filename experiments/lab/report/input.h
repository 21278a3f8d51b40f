// The contents of a report.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

// Everything that a report shows.
struct ReportInput {
  std::string title = {};
  std::string question = {};  // of the study; empty if there is none
  std::vector<JudgedClaim> claims = {};
  std::vector<Section> sections = {};      // of the study; shown before the sections of the library
  std::string series = "gate";             // heading of the column of methods
  std::vector<std::string> columns = {};   // measured values with a column, besides losses and accuracy
  NamedTexts settings = {};                // the methods and settings of the study: name, value
  Judging judging = {};                    // for fewer than two classes no chance level is drawn
  std::vector<Condition> conditions = {};  // verdicts on the trials
  std::vector<TrialResult> trials = {};    // methods appear in this order
  std::vector<LossPoint> losses = {};
  std::vector<LayerPoint> layers = {};
  NamedTexts notes = {};  // provenance: version, commit, device, command line
};

}  // namespace plumb::lab
