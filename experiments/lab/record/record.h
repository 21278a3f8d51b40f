// The record of a trial: its point, status, measured values and logged steps.
//
// Finite doubles are read back from JSON exactly. A number that is not finite is written as null.
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

// A value that was not measured or is not finite.
inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// How a trial ended.
enum class Status {
  ok,
  diverged,  // finished: the divergence is the result of the trial
  hopeless,  // not finished: stopped by --stop-hopeless
  failed     // not finished: stopped by an exception
};
std::string_view to_string(Status status);  // "ok", "diverged", "hopeless", "failed"
// Whether the trial has a result: ok or diverged.
inline bool is_finished(Status status) { return status == Status::ok || status == Status::diverged; }

// Named numbers in order. Each name occurs once.
using Values = std::vector<std::pair<std::string, double>>;

double value_of(const Values& values, std::string_view name);  // `unknown` if the name does not occur
// Replaces the value of a name, or appends the name with the value.
void set_value(Values& values, const std::string& name, double value);

// The values that a trial logged in one step.
struct StepValues {
  std::int64_t step = 0;
  Values values = {};
  std::string ended = {};  // if the trial diverged or failed in this step, the reason
};

// The record of a trial.
struct Record {
  Point point = {};
  Status status = Status::ok;
  std::int64_t steps = 0;                // optimizer steps taken
  double seconds = 0;                    // the time that these steps took
  std::string reason = {};               // of a divergence, a stop or a failure, in one line
  std::int64_t diverges_from = -1;       // the step at which a divergence began, not after its "diverged_at"; -1: none
  Values values = {};                    // measured for the trial as a whole
  std::vector<StepValues> metrics = {};  // logged steps in ascending order, each once
  std::string model = {};                // facts about the trained model, a JSON object (model_facts.h); empty: none
  std::vector<std::string> attachments = {};  // further JSON objects, for files that the study defines

  // The value of this name, or the number of steps or seconds if the name is "steps" or "seconds". `unknown` if there
  // is none.
  double value(std::string_view name) const;
  // The value for comparisons of methods (comparison.h). Infinite if the trial diverged or was stopped as hopeless,
  // even if it has measured a value. `unknown` if the trial failed or the value is not finite.
  double outcome(std::string_view name) const;
  std::int64_t seed() const { return point.get<std::int64_t>("seed"); }  // throws Error if there is no axis "seed"
};

// A record as one JSON object without a line end.
std::string to_json(const Record& record);
// Reads the JSON object of a record. Throws Error if `json` is not one; the message says why.
Record record_from_json(std::string_view json);
// A point as a JSON object: {"gate":"pre","seed":0}.
std::string to_json(const Point& point);
// The values of a step as a JSON object, {"step":0,"loss":2.3}. If the trial ended in this step, the object has the
// reason as well. A line of metrics.jsonl is this object with the axes of the trial.
std::string to_json(const StepValues& step, Status status);
// The record as it would be read back from JSON: values that are not finite become NaN.
Record as_read(Record record);

// The names of all values of the records, in order of first appearance.
std::vector<std::string> measured_names(const std::vector<Record>& records);

}  // namespace plumb::lab
