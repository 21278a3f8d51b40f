// The records of a study: what is finished, in memory and in its run folder.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "experiments/common/report.h"
#include "experiments/common/results.h"
#include "experiments/common/run_folder.h"

namespace plumb::lab {

// An arm before it ran.
struct Arm {
  std::string gate;
  std::int64_t depth;
  double lr;
  std::uint64_t seed;

  std::string label() const;  // "layerscale depth 48 lr 0.001 seed 0"
};

// results.csv is written last: an arm is finished when it has a row there, and rows of other files without one are left overs of a
// process that was killed.
class Study {
 public:
  // Reads what the folder holds. Arms that failed count as unfinished.
  Study(const RunFolder& folder, const std::vector<Arm>& arms, ReportInput report);

  bool finished(const Arm& arm) const;
  void add(const ArmResult& result, std::vector<LossPoint> losses, std::vector<LayerPoint> layers);
  void write() const;  // all files, each atomically

  const std::vector<ArmResult>& results() const { return report_.arms; }

 private:
  using Key = std::tuple<std::string, std::int64_t, double, std::uint64_t>;
  template <class Row>
  static Key key(const Row& row) {
    return {row.gate, row.depth, row.lr, row.seed};
  }
  void read();
  void sort();

  const RunFolder& folder_;
  std::map<Key, std::size_t> order_;  // of the arms, in which rows appear
  ReportInput report_;
};

}  // namespace plumb::lab
