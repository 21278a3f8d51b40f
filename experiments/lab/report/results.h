// What a study's tables, reports and claims are made from: its finished trials, in the order of --dry-run.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/stats/claims.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/outcome.h"
#include "experiments/lab/stats/verdict.h"

namespace plumb::lab {

struct StudyResults {
  std::string name = {}, question = {};
  std::vector<std::string> axes = {};     // in the order of columns; "seed" is the last
  std::vector<std::string> columns = {};  // that come first among the measured values
  std::vector<std::string> show = {};     // values that the table on the terminal shows; if empty, the first few
  std::vector<Record> records = {};
  DataFacts data = {};
  NamedTexts settings = {}, notes = {};    // how it was done; where the numbers come from
  std::vector<TrialResult> trials = {};    // the records as reports see them, in their order
  std::vector<Condition> conditions = {};  // how the methods compare; none where nothing has a training loss
  std::vector<JudgedClaim> claims = {};    // what was claimed, and what came of it
  std::vector<Section> sections = {};      // of the study's own
  Judging judging = {};                    // how methods are compared
  std::filesystem::path folder = {};
  bool colour = false;  // whether text goes to a terminal that shows colours

  // The trials without their seeds and, if given, without the axis `across` (group_trials).
  std::vector<TrialGroup> groups(std::string_view across = {}) const { return group_trials(trials, across); }
};

// How many values tables and progress show where the study does not say which.
inline constexpr std::size_t shown_unasked = 8;

// What reports call the method of a trial: all its axes but depth, lr and seed; of several, those alone that differ
// between trials.
std::string method_name(const StudyResults& results, const Point& point);
// The trials as reports see them: the axes depth and lr are depth and rate, all others together name the method.
std::vector<TrialResult> trial_results(const StudyResults& results);
// The measured values that tables have columns for, besides the losses and the accuracy.
std::vector<std::string> further_columns(const StudyResults& results);
// Judges the trials once, for every table, file and figure: fills in `trials`, `claims` and `conditions`. A claim that
// compares two methods under one condition is that pair's verdict there as well, so that a claim and the sentences
// below it agree. `named`: the points of all trials of the call, so that claims about other values of the axes are left
// out; `judging` and `about_rates`: the records by which claims are judged, and those about rates.
void judge_all(StudyResults& results, const std::vector<Claim>& claims, const std::vector<Point>& named,
               const std::vector<Record>& judging, const std::vector<Record>& about_rates);

// The values that the table has columns for: those that the study asks for, or the first few that were measured.
struct ShownValues {
  std::vector<std::string> names;
  std::size_t left_out = 0;
};
ShownValues shown_values(const StudyResults& results);

}  // namespace plumb::lab
