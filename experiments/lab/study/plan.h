// Which trials a study runs: the points on its axes and, in a search, those that follow from how others ended.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

class Plan {
 public:
  // Reads the declaration, which outlives it, when all options are set.
  explicit Plan(const StudyDeclaration& study) : study_(study) {}

  // The combinations on the axes that are not searched, without the seed, in the order of the trials. Throws UsageError
  // where there is none.
  std::vector<Point> grid() const;
  bool is_searched() const;
  // What a search wants next; with --best-lr the rates that choose, then the rate that was chosen.
  std::vector<Point> next_points(const Search& search) const;
  // The whole point of a trial, in the order of the columns.
  Point point_of(const Point& on_grid, const Point& searched, std::int64_t seed) const;
  // Identifies a trial's result in the ledger.
  std::string key_of(const Point& point, const DataFacts& data) const;
  // What a trial costs beside others: its steps, times its depth.
  double cost_of(const Point& point) const;
  // The claims that this call does not judge, each with the reason. Throws Error for claims that no call can judge.
  std::vector<std::string> claims_not_judged() const;
  // Throws UsageError where the options of a trial do not suit the images or each other.
  void check_for(const ImageSet& images) const;

  const StudyOptions& options() const { return study_.options; }

 private:
  bool is_searched(const AxisData& axis) const;  // its values are not all combined with those of the other axes

  const StudyDeclaration& study_;
};

}  // namespace plumb::lab
