// Verdicts on the methods of a study, by depth and learning rate.
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

// Whether a mean training loss is near the loss of random guessing among `classes` classes.
bool near_chance(const Summary& training_loss, std::int64_t classes);

// Whether there is something to judge: a trial has a training loss, or no trial ended ok.
bool has_training_losses(const std::vector<TrialResult>& trials);

// The seeds that choose learning rates with --best-lr: the smallest third of the seeds, at least one. The other seeds
// are judged.
std::set<std::int64_t> choosing_seeds(const std::vector<std::int64_t>& seeds);

// The best learning rate of a method by its outcomes (comparison.h) at the choosing seeds. Rates with a finite loss
// come first, then rates with the smallest share of lost trials, with the lowest mean loss, and the lowest rate. Throws
// Error if `by_rate` is empty.
double best_rate(const std::map<double, Outcomes>& by_rate);

// How the methods of a study are compared.
struct Judging {
  std::int64_t classes = 0;
  std::string control = {};  // the method that the others are compared with, if it has trials
  // With --best-lr, the seeds that choose the learning rate of each method at each depth (best_rate). All learning
  // rates then form one condition, and only the other seeds are judged.
  std::set<std::int64_t> choosing = {};
  bool no_others = false;  // there is no other seed, so the choosing seed is judged
  // Nothing is ranked, because the outcomes of trials decide which trials there are, as in a search.
  bool off = false;
  std::vector<Reference> references = {};  // levels to compare values with
  std::optional<double> rate = {};         // the learning rate of all trials, if no axis has learning rates
};
// Sentences for tables and figures about the seeds that chose the learning rates; empty without choosing seeds.
std::string who_chose(const Judging& how);

// The results of a method under one condition.
struct Standing {
  std::string method;
  // The training losses at the judged seeds, as outcomes (comparison.h). Trials stopped as hopeless count as diverged.
  Outcomes losses = {};
  Summary loss = {};                                  // over the finite losses
  std::int64_t diverged = 0, stopped = 0, seeds = 0;  // numbers of trials; `seeds` counts all that have an outcome
  bool near_chance = false;
  // The smallest depth at which the method has outcomes at this learning rate.
  std::int64_t shallowest = 0;
  // The method is near chance at this depth and already did not train at a smaller one. Nothing follows about the
  // depth, so the method is not compared.
  bool untested = false;
  std::optional<double> rate = {};  // the learning rate that was chosen, with Judging::choosing
};

// The difference between two standings of a condition, given by their indices.
struct JudgedPair {
  std::size_t first, second;
  Difference difference;
};

// The methods at one depth and one learning rate. With Judging::choosing the depth has one condition for all rates.
struct Condition {
  std::int64_t depth = 0;                  // 0 if the study has no depths
  std::optional<double> rate = {};         // empty with Judging::choosing, or if all trials have the same rate
  std::optional<double> shared_rate = {};  // the rate of all trials of the study, if they have the same
  std::vector<Standing> standings = {};    // the control first, then in order of first appearance
  bool has_control = false;
  std::vector<JudgedPair> against_control = {};  // each tested method against the control, as one family
  std::vector<JudgedPair> pairs = {};            // all pairs of tested methods, as one family
};

// The verdict of a claim on two methods under one condition. The claim was stated before the trials ran, so it is
// judged as a family of one, and its verdict replaces the verdict of the families of the condition.
struct ClaimedPair {
  std::string first, second;
  std::int64_t depth = 0;
  double rate = 0;  // 0 with Judging::choosing, or if the study has no axis of learning rates
  Difference difference = {};
};

// The conditions of a study by ascending depth, then learning rate. Empty if there is nothing to judge
// (has_training_losses, Judging::off).
std::vector<Condition> conditions(const std::vector<TrialResult>& trials, const Judging& how,
                                  const std::vector<ClaimedPair>& claimed = {});

// The verdict on a condition in one or more sentences (plain text): the best method, the differences from the control,
// and the methods that stayed near chance or diverged.
std::string sentence(const Condition& condition, const Judging& how);

// The text of comparisons.csv, with a row for each pair of methods under each condition in both families. With
// Judging::choosing a row has the learning rates of both methods, else the rate of the condition.
std::string comparisons_csv(const std::vector<Condition>& conditions);

}  // namespace plumb::lab
