// Verdicts on the methods of a study, by depth and learning rate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/chance.h"
#include "experiments/lab/stats/comparison.h"
#include "experiments/lab/stats/groups.h"
#include "experiments/lab/stats/reference.h"
#include "experiments/lab/stats/trained.h"

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
  // depth, and the rate of a method is that of its trials.
  bool own_rates = false;
  // Whether nothing is judged. In a search, the outcomes of trials decide which trials there are, so methods cannot be
  // compared.
  bool off = false;
  std::vector<Reference> references = {};  // reference levels of values
  std::optional<double> rate = {};         // the learning rate of all trials, if no axis has learning rates
  std::int64_t look = 1;                   // how often the seeds were judged, this time included (level_of_look)
  // The texts of the claims that were stated when the study folder was made; no value if the folder does not say.
  std::optional<std::vector<std::string>> planned_claims = {};
  std::vector<Measure> measures = measures_of_classification(0);  // of the problem
};

// For each trial, whether it trained (trained.h). The trials at one depth and one learning rate are a section; with
// Judging::own_rates, all trials at one depth are. A trial without a training loss trained if it ended ok.
std::vector<bool> which_trained(const std::vector<TrialResult>& trials, const Judging& how);

// The results of a method under one condition.
struct Standing {
  std::string method;
  Outcomes losses = {};         // the training losses at the judged seeds; infinite for a diverged or hopeless trial
  Outcomes clean = {};          // the same for comparisons with chance (TrialResult::clean_loss)
  Outcomes judged = {};         // the losses, and infinity for each trial that did not train
  Summary loss = {};            // summary of the losses that trained, or of all finite losses if no seed trained
  double clean_mean = unknown;  // the mean of `clean` over the same seeds
  // Numbers of trials that diverged, that were stopped as hopeless, that trained, and that have an outcome.
  std::int64_t diverged = 0, stopped = 0, trained = 0, seeds = 0;
  bool none_trained = false;  // whether there are finite losses, but no seed trained
  bool near_chance = false;   // whether, in addition, clean_mean is near chance
  // The smallest depth at which the method has outcomes at this learning rate.
  std::int64_t shallowest = 0;
  // Whether the method is near chance at this depth and already did not train at a smaller depth. The result then says
  // nothing about the effect of depth, so the method is not compared.
  bool untested = false;
  std::optional<double> rate = {};  // the method's own learning rate; empty without Judging::own_rates
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
  std::vector<JudgedPair> against_control = {};  // each tested method against the control; judged as one family
  std::vector<JudgedPair> pairs = {};            // all pairs of tested methods; judged as one family
};

// The verdict of a claim on two methods under one condition. Claims are a family of their own (claims.h). The verdict
// of the claim replaces the verdict on this pair in the families of the condition.
struct ClaimedPair {
  std::string first, second;
  std::int64_t depth = 0;
  double rate = 0;  // 0 with Judging::own_rates, or if the study has no axis of learning rates
  Difference difference = {};
};

// The conditions of a study by ascending depth, then learning rate. Empty if Judging::off is set or
// has_training_losses() is false.
std::vector<Condition> conditions(const std::vector<TrialResult>& trials, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed = {});

// The verdict on a condition in one or more sentences (plain text). The sentences name the best method, the differences
// from the control, and the methods that stayed near chance or diverged.
std::string sentence(const Condition& condition, const Judging& how);

// The text of comparisons.csv. Each pair of methods has a row for each condition and family. With Judging::own_rates,
// the row has the learning rates of both methods, otherwise the rate of the condition.
std::string comparisons_csv(const std::vector<Condition>& conditions);

}  // namespace plumb::lab
