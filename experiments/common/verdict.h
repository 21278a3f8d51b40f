// What the arms of a study say about its methods, depth by depth.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/common/comparison.h"
#include "experiments/common/statistics.h"

namespace plumb::lab {

// A mean training loss of at least this share of ln(classes) counts as "near chance".
inline constexpr double near_chance_share = 0.95;

// ln(classes), or infinity for fewer than two classes: nothing is near that.
double chance_loss(std::int64_t classes);

bool near_chance(const Summary& training_loss, std::int64_t classes);

struct Judging {
  std::int64_t classes = 0;
  std::string control = "pre";  // the method that others are compared with, if it is among them
  // Learning rates are one condition: at each seed a method has the rate that was best on its other seeds (fewest diverged, then the lowest mean
  // training loss, then the lowest rate), so that the choice is inside the statistics. With one seed it is chosen on that seed.
  bool best_rate = false;
};

// A method under one condition.
struct Standing {
  std::string method;
  Outcomes losses;  // training losses at the seeds of the study (comparison.h)
  Summary loss;     // of those that ended with one
  std::int64_t diverged = 0, seeds = 0;
  bool near_chance = false;
  bool untested = false;      // near chance, and did not train at its shallowest depth: nothing follows about depth
  std::vector<double> rates;  // that its seeds have, each once
};

// A condition: a depth, and a learning rate unless Judging::best_rate or all arms have the same.
struct Place {
  std::int64_t depth = 0, shallowest = 0;  // of the study; 0: it has none
  std::optional<double> rate = {};
  std::vector<Standing> standings = {};  // in order of first appearance; the control is the first, if it is there
  bool has_control = false;
  std::vector<Difference> against_control = {};  // of each standing but the first; one family
  std::vector<Difference> pairs = {};            // all_pairs() of the standings; one family
};

// By ascending depth, then rate.
std::vector<Place> places(const std::vector<ArmResult>& arms, const Judging& how);

// One sentence or more (plain text): what trained best, what is apart from the control, what stayed near chance, what diverged.
std::string sentence(const Place& place, const Judging& how);

// comparisons.csv: a row for each pair of methods under each condition, in both families.
std::string comparisons_csv(const std::vector<Place>& places);

}  // namespace plumb::lab
