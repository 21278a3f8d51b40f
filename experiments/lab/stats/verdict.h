// Verdicts on the methods of a study, by depth and learning rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/chance.h"
#include "experiments/lab/stats/difference.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/rate_choice.h"
#include "experiments/lab/stats/reference.h"

namespace plumb::lab {

// Whether the mean training loss of a group, above the entropy of its targets (clean_loss), is near chance.
bool near_chance(const TrialGroup& group, const Chance& chance);
// The rule of near_chance() in words for these trials: "mean training loss at or above 95 % of ln 10 = 2.303".
std::string near_chance_rule(const std::vector<TrialResult>& trials, const Chance& chance);

// False if some trials ended ok but no trial has a training loss: then there is nothing to judge. Trials that all
// diverged can be judged.
bool has_training_losses(const std::vector<TrialResult>& trials);

// How the methods of a study are compared.
struct Judging {
  Chance chance = {};        // of the training loss
  std::string control = {};  // the method that all others are compared with if the control has trials
  // Whether each method trained at its own learning rate at each depth. The methods then form one condition for each
  // depth, the rate of a method is that of its trials, and a verdict must hold at neighbouring rates of the loser.
  bool own_rates = false;
  std::vector<RateChoice> rates = {};  // the learning rates that searches have chosen; empty without such searches
  // Whether nothing is judged. In a search, the outcomes of trials decide which trials there are, so methods cannot be
  // compared.
  bool off = false;
  // Whether the trials are older than this rule of judging. They have wins, losses and evidence, but no verdicts.
  bool old_trials = false;
  std::vector<Reference> references = {};  // reference levels of values
  std::optional<double> rate = {};         // the learning rate of all trials, if no axis has learning rates
  std::vector<std::uint64_t> seeds = {};   // the judged seeds, in ascending order
  // The names of the claims (name_of) that were stated when the study folder was made; no value if the folder does not
  // say.
  std::optional<std::vector<std::string>> planned_claims = {};
  std::vector<Measure> measures = measures_of_classification(0);  // of the problem
};

// The results of a method under one condition.
struct Standing {
  std::string method;
  Point cell = {};              // its combination of the axes
  Outcomes losses = {};         // the training losses of its trials
  Summary loss = {};            // summary of the losses that trained, or of all finite losses if no seed trained
  double clean_mean = unknown;  // the mean of the losses for comparisons with chance over the same seeds
  // Numbers of trials that diverged, that were stopped as hopeless, that trained, and that have an outcome.
  std::int64_t diverged = 0, stopped = 0, trained = 0, seeds = 0;
  bool none_trained = false;        // whether there are finite losses, but no seed trained
  bool near_chance = false;         // whether, in addition, clean_mean is near chance
  std::optional<double> rate = {};  // the method's own learning rate; empty without Judging::own_rates
  // The trials that did not train, in words: "2 of 6 diverged, 1 of 6 hopeless". Empty if all trained, and for those
  // that ended if none trained.
  std::string lost_words() const;
};

// The difference between two standings of a condition. `first` and `second` are their indices.
struct JudgedPair {
  std::size_t first, second;
  Difference difference;
};

// The methods at one depth and one learning rate. With Judging::own_rates, a depth has one condition for all rates.
struct Condition {
  std::int64_t depth = 0;                  // 0 if the study has no depths
  std::optional<double> rate = {};         // empty with Judging::own_rates, or if all trials have the same rate
  std::optional<double> shared_rate = {};  // the rate of all trials of the study; empty if rates differ
  std::vector<Standing> standings = {};    // the control comes first, then methods in order of first appearance
  bool has_control = false;
  std::vector<JudgedPair> against_control = {};  // each method against the control; judged as one family
  std::vector<JudgedPair> pairs = {};            // all pairs of methods, with evidence and without verdicts
};

// The verdict on a condition in one or more sentences (plain text). The sentences name the best method, the differences
// from the control, and the methods that stayed near chance or diverged.
std::string sentence(const Condition& condition, const Judging& how);

// The condition that stands for the study, of at least one: of those at the largest depth, the one whose best method
// lost the fewest seeds and then has the lowest loss.
const Condition& leading(const std::vector<Condition>& conditions);

// The text of comparisons.csv. Each pair of methods has a row for each condition and family. With Judging::own_rates,
// the row has the learning rates of both methods, otherwise the rate of the condition.
std::string comparisons_csv(const std::vector<Condition>& conditions);

}  // namespace plumb::lab
