// The results of a study. Tables, the report and the verdicts on claims are made from these results.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/signals/layer_probe.h"
#include "experiments/lab/stats/claims.h"

namespace plumb::lab {

// A learning rate beside that of a combination, in half octaves above the chosen rate, at which a verdict wants trials.
struct WantedRate {
  Point cell = {};
  int half_octaves = 0;
  bool operator==(const WantedRate&) const = default;
};

// The results of a study: the records of its ended trials, and all values derived from the records.
struct StudyResults {
  std::string name = {}, question = {};
  std::vector<std::string> axes = {};     // names of the axes in the order of columns; "seed" is the last
  std::vector<std::string> columns = {};  // measured values that come first in results.csv
  // Records of all judged trials that ended, in the order of --dry-run. The trials of a search for learning rates are
  // not judged; they are in `judging.rates`.
  std::vector<Record> records = {};
  std::vector<Record> neighbours = {};  // records of the trials at neighbouring rates
  std::vector<Attached> attached = {};  // the attachments of each record, in the same order
  DataFacts data = {};
  // Settings of the study, and notes on the provenance of the results.
  NamedTexts settings = {}, notes = {};
  std::vector<TrialResult> trials = {};    // one result for each record, in the same order
  std::vector<WantedRate> wanted = {};     // the rates at which verdicts still want trials
  std::vector<Condition> conditions = {};  // verdicts on the methods; empty without training losses
  std::vector<JudgedClaim> claims = {};    // the claims with their verdicts
  std::vector<Section> sections = {};      // sections that the study made
  Judging judging = {};                    // how methods are compared
  std::filesystem::path folder = {};       // the study folder
  bool colour = false;                     // whether text goes to a terminal that shows colours

  // Groups of trials that differ only in their seeds. If `across` is given, trials of a group may also differ on this
  // axis (group_trials).
  std::vector<TrialGroup> groups(std::string_view across = {}) const { return group_trials(trials, across); }
};

// The number of values that tables and progress show if the study does not choose values.
inline constexpr std::size_t shown_unasked = 8;

// The name of the method of a trial in reports. The name has the trial's values on all axes other than depth, lr and
// seed. Axes on which all trials agree are left out, unless the trials agree on all these axes.
std::string method_name(const StudyResults& results, const Point& point);
// A TrialResult for each record, with the name of its method.
std::vector<TrialResult> trial_results(const StudyResults& results);
// The heading of the column of methods: the axis whose values name the methods, or "trial" for several axes.
std::string series_name(const StudyResults& results);
// The measured values that have columns in tables, besides the measures of the problem.
std::vector<std::string> further_columns(const StudyResults& results);
// Judges the trials once for all tables, files and figures: sets `trials`, `claims`, `conditions` and `wanted` of
// `results`. If a claim compares two methods under one condition, the verdict on the claim is also the verdict on that
// pair. The claim then agrees with the sentences about the condition. `named` has the points of all judged trials of
// the call: their seeds are judged, and claims about other points are left out.
void judge_all(StudyResults& results, const std::vector<Claim>& claims, const std::vector<Point>& named);

// The measured values that have a column in tables, the values that the study chose or the first few, and the number of
// other measured values.
std::pair<std::vector<std::string>, std::size_t> shown_values(const StudyResults& results);

}  // namespace plumb::lab
