// What one trial of a study leaves behind.
//
// Finite doubles survive a round trip through JSON exactly; a number that is not finite is null, never NaN.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/lab/record/point.h"

namespace plumb::lab {

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

enum class Status {
  ok,
  diverged,  // a result: the training came to nothing
  hopeless,  // stopped by --stop-hopeless: not finished
  failed     // an exception: not finished
};
std::string_view to_string(Status status);
inline bool is_finished(Status status) { return status == Status::ok || status == Status::diverged; }

using Values = std::vector<std::pair<std::string, double>>;  // each name once

double value_of(const Values& values, std::string_view name);  // unknown if it is not there
void set_value(Values& values, const std::string& name, double value);

// The values that a trial logged in one step.
struct StepValues {
  std::int64_t step = 0;
  Values values = {};
  std::string ended = {};  // why the trial diverged or failed, in the step where it did
};

struct Record {
  Point point = {};
  Status status = Status::ok;
  std::int64_t steps = 0;           // optimizer steps taken
  double seconds = 0;               // of these
  std::string reason = {};          // of a divergence, a stop or a failure, in one line
  std::int64_t diverges_from = -1;  // the step at which a divergence began, at the latest its "diverged_at"; -1: none
  Values values = {};               // what was measured of the trial
  std::vector<StepValues> metrics = {};       // of its steps, in their order, each once
  std::string model = {};                     // what was trained: a JSON object (model_facts.h); empty: not said
  std::vector<std::string> attachments = {};  // further JSON objects, for the study's own files

  // A value, or one of the common numbers "steps" and "seconds".
  double value(std::string_view name) const;
  // A value for comparisons (comparison.h): infinite where the trial was lost (it diverged, or was stopped as
  // hopeless), whatever it measured before; unknown where it failed, or has no finite value.
  double outcome(std::string_view name) const;
  std::int64_t seed() const { return point.get<std::int64_t>("seed"); }
};

// One JSON object without a line end, and back. Throws Error that says what was expected.
std::string to_json(const Record& record);
Record record_from_json(std::string_view json);
std::string to_json(const Point& point);
// {"step":0,"loss":2.3}, and the reason where the trial ended: a line of metrics.jsonl without the axes.
std::string to_json(const StepValues& step, Status status);
// The same values as they are read back: those that are not finite are NaN.
Record as_read(Record record);

// The names that were measured, in order of first appearance.
std::vector<std::string> measured_names(const std::vector<Record>& records);

}  // namespace plumb::lab
