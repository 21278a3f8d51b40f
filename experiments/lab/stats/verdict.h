// What the trials of a study say about its methods, depth by depth.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// A mean training loss of at least this share of ln(classes) counts as "near chance".
inline constexpr double near_chance_share = 0.95;

bool near_chance(const Summary& training_loss, std::int64_t classes);

// Whether there is something to judge: a training loss, or nothing but trials that did not get to one.
bool has_training_losses(const std::vector<TrialResult>& trials);

// The seeds that choose learning rates, so that the others judge: the smallest third, at least one.
std::set<std::int64_t> choosing_seeds(const std::vector<std::int64_t>& seeds);

// The rate that a method is judged at, by its outcomes (comparison.h) at the seeds that choose: one that has a loss,
// then the smallest share of lost trials, then the lowest mean loss, then the lowest rate. Expects a rate.
double best_rate(const std::map<double, Outcomes>& by_rate);

struct Judging {
  std::int64_t classes = 0;
  std::string control = {};  // the method that others are compared with, if it is among them
  // If there are any, learning rates are one condition: these seeds choose each method's rate at each depth
  // (best_rate), and the others alone are judged; but where there will be no others, those that chose.
  std::set<std::int64_t> choosing = {};
  bool no_others = false;
  // Nothing is ranked: which trials there are follows from how others ended, as in a search.
  bool off = false;
  std::vector<Reference> references = {};  // levels to compare values with
  std::optional<double> rate = {};         // the learning rate of all trials, where no axis has it
};
// Who chose rates and who is judged, in a sentence for beside tables and figures; empty where nobody chose.
std::string who_chose(const Judging& how);

// A method under one condition.
struct Standing {
  std::string method;
  // Training losses at the judged seeds (comparison.h); a trial that was stopped as hopeless counts as one that
  // diverged.
  Outcomes losses = {};
  Summary loss = {};  // of those that ended with one
  std::int64_t diverged = 0, stopped = 0, seeds = 0;
  bool near_chance = false;
  // The smallest depth at which the method has trials that ended at this rate. It is untested where it stays near
  // chance at a larger one and did not train there either: nothing follows about depth, and it is not compared.
  std::int64_t shallowest = 0;
  bool untested = false;
  std::optional<double> rate = {};  // with Judging::choosing
};

// Two of a condition's standings.
struct JudgedPair {
  std::size_t first, second;
  Difference difference;
};

// A condition: a depth, and a learning rate unless Judging::choosing or all trials have the same.
struct Condition {
  std::int64_t depth = 0;  // 0: the study has none
  std::optional<double> rate = {};
  std::optional<double> shared_rate = {};  // of all its trials, where they have one and it is not `rate`
  std::vector<Standing> standings = {};    // in order of first appearance; the control is the first, if it is there
  bool has_control = false;
  std::vector<JudgedPair> against_control = {};  // each other that is tested; one family
  std::vector<JudgedPair> pairs = {};            // of all that are tested; one family
};

// Two methods under one condition that a claim compares: stated before the trials ran, it is judged as one comparison
// alone, and the condition has its verdict in place of its family's.
struct ClaimedPair {
  std::string first, second;
  std::int64_t depth = 0;
  double rate = 0;  // 0: with Judging::choosing, or where the study has no axis of rates
  Difference difference = {};
};

// By ascending depth, then rate; none where there is nothing to judge (has_training_losses).
std::vector<Condition> conditions(const std::vector<TrialResult>& trials, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed = {});

// One sentence or more (plain text): what trained best, what is apart from the control, what stayed near chance, what
// diverged.
std::string sentence(const Condition& condition, const Judging& how);

// comparisons.csv: a row for each pair of methods under each condition, in both families; with their rate, or their
// rates where each has its own.
std::string comparisons_csv(const std::vector<Condition>& conditions);

}  // namespace plumb::lab
