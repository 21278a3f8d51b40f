// The results of a study, from which its tables, report and claims are made.
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

// The results of a study: the records of its ended trials, and everything that follows from them.
struct StudyResults {
  std::string name = {}, question = {};
  std::vector<std::string> axes = {};     // in the order of columns; "seed" is the last
  std::vector<std::string> columns = {};  // measured values that come first in results.csv
  std::vector<std::string> show = {};     // measured values in the table on the terminal; if empty, the first few
  std::vector<Record> records = {};       // of all trials that ended, in the order of --dry-run
  DataFacts data = {};
  NamedTexts settings = {}, notes = {};    // settings of the study; provenance of the results
  std::vector<TrialResult> trials = {};    // one for each record, in the same order
  std::vector<Condition> conditions = {};  // verdicts on the methods; empty without training losses
  std::vector<JudgedClaim> claims = {};    // the claims with their verdicts
  std::vector<Section> sections = {};      // made by the study
  Judging judging = {};                    // how methods are compared
  std::filesystem::path folder = {};       // study folder
  bool colour = false;                     // whether text goes to a terminal that shows colours

  // Groups of trials that differ only in their seeds and, if given, on the axis `across` (group_trials).
  std::vector<TrialGroup> groups(std::string_view across = {}) const { return group_trials(trials, across); }
};

// The number of values that tables and progress show if the study does not choose values.
inline constexpr std::size_t shown_unasked = 8;

// The name of the method of a trial in reports: its values on all axes other than depth, lr and seed. Axes on which all
// trials agree are left out, unless all agree.
std::string method_name(const StudyResults& results, const Point& point);
// The results of all records, with the names of their methods.
std::vector<TrialResult> trial_results(const StudyResults& results);
// The measured values that tables have columns for, besides the losses and the accuracy.
std::vector<std::string> further_columns(const StudyResults& results);
// Judges the trials once for all tables, files and figures: sets `trials`, `claims` and `conditions` of `results`. If a
// claim compares two methods under one condition, its verdict is also the verdict of that pair, so that the claim
// agrees with the sentences about the condition. `named` has the points of all trials of the call; claims about other
// points are left out. Claims that name learning rates are judged by the records `about_rates`, all others by
// `judging`.
void judge_all(StudyResults& results, const std::vector<Claim>& claims, const std::vector<Point>& named,
               const std::vector<Record>& judging, const std::vector<Record>& about_rates);

// The measured values that have a column in tables: those that the study chose, or the first few.
struct ShownValues {
  std::vector<std::string> names;
  std::size_t left_out = 0;  // number of other measured values
};
// The columns for these results.
ShownValues shown_values(const StudyResults& results);

}  // namespace plumb::lab
