// The plan of a study: the points of its trials on the axes, and the next points of its searches.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Derives the trials of a study from its declaration.
class Plan {
 public:
  // The declaration must have all options set, and must outlive the plan.
  explicit Plan(const StudyDeclaration& study) : study_(study) {}

  // The combinations of values on the axes that are not searched, without the seed, in the order of the trials. If each
  // combination has its own learning rate (own_rates.h), the points have no "lr", and no values on axes that share a
  // rate. Throws UsageError if there is no combination.
  std::vector<Point> grid() const;
  // Whether trials are named in rounds, from the results of earlier rounds: the study has searched axes, or each
  // combination has its own learning rate.
  bool is_searched() const { return study_.next != nullptr; }
  // The next points of a search of the study, or of a search for a learning rate.
  std::vector<Point> next_points(const Search& search) const { return study_.next(search); }
  // A line for the user about a search that has named its next points, such as a warning that no tried learning rate
  // trains. Empty if there is nothing to say.
  std::string note_on(const Search& search, const DataFacts& data) const;
  // The complete point of a trial, with values in the order of the columns. Throws Error if `searched` lacks a value on
  // a searched axis, or has a value on another axis.
  Point point_of(const Point& on_grid, const Point& searched, std::int64_t seed) const;
  // The key of a trial in the ledger. The key is a hash of the study, its settings, the data, the point and the number
  // of threads. If training is strictly deterministic, the number of threads is left out.
  std::string key_of(const Point& point, const DataFacts& data) const;
  // The relative cost of a trial: its number of steps times its depth.
  double cost_of(const Point& point) const;
  // The claims that this call does not judge, each with the reason. Throws Error for claims that are wrong in every
  // call.
  std::vector<std::string> claims_not_judged() const;
  // The claims of the study. If each combination has its own learning rate, claims about a rate are left out.
  std::vector<Claim> claims() const;
  // Throws UsageError if the options of a trial do not suit the data or each other.
  void check_for(const DataFacts& data) const;

  const StudyOptions& options() const { return study_.options; }

 private:
  bool is_searched(const AxisData& axis) const;  // whether a search chooses among the values of the axis

  const StudyDeclaration& study_;
};

}  // namespace plumb::lab
