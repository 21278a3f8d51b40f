// The record of a trial: its point, status, measured values and logged steps.
//
// A finite double is read back from JSON exactly. A number that is not finite is written as null.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/record/point.h"

namespace plumb::lab {

// A value that was not measured or is not finite.
inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

// How a trial ended.
enum class Status {
  ok,
  diverged,  // finished; the divergence is the result of the trial
  hopeless,  // not finished, because --stop-hopeless stopped the trial
  failed     // not finished, because of an exception
};
constexpr auto names_of(Status) { return std::array{"ok", "diverged", "hopeless", "failed"}; }
// Whether a trial with this status has a result: whether the status is ok or diverged.
inline bool is_finished(Status status) { return status == Status::ok || status == Status::diverged; }

// Numbers with names, in order. Each name occurs once.
using Values = std::vector<std::pair<std::string, double>>;

double value_of(const Values& values, std::string_view name);  // the value, or `unknown` if the name does not occur
// Replaces the value of the name, or appends the name and the value if the name does not occur.
void set_value(Values& values, const std::string& name, double value);

// The values that a trial logged in one step.
struct StepValues {
  std::int64_t step = 0;
  Values values = {};
  std::string ended = {};  // the reason, if the trial diverged or failed in this step
};

// The record of a trial.
struct Record {
  Point point = {};
  Status status = Status::ok;
  std::int64_t steps = 0;                // number of optimizer steps taken
  double seconds = 0;                    // the time for these `steps`
  std::string reason = {};               // the reason for a divergence, a stop or a failure, in one line
  std::int64_t diverges_from = -1;       // first bad step of a divergence, at or before "diverged_at"; -1: none
  Values values = {};                    // values measured for the trial as a whole
  std::vector<StepValues> metrics = {};  // the logged steps, each once, in ascending order
  std::string model = {};                // facts about the trained model as a JSON object (model_facts.h); empty: none
  // Whether --save-weights has written the weights file of the trial. No value: the option was not given, or the
  // trial diverged.
  std::optional<bool> weights_saved = {};
  std::vector<std::string> attachments = {};  // further JSON objects, for files that the study writes

  // The value of this name, or `unknown` if the name does not occur. The names "steps" and "seconds" give the members
  // `steps` and `seconds`.
  double value(std::string_view name) const;
  // The value for comparisons of methods (comparison.h). The result is infinite if the trial diverged or was stopped as
  // hopeless, even if the trial has measured a value. The result is `unknown` if the trial failed or if the value is
  // not finite.
  double outcome(std::string_view name) const;
  std::int64_t seed() const { return point.get<std::int64_t>("seed"); }  // throws Error if the point has no axis "seed"
};

// The record as one JSON object without a line end.
std::string to_json(const Record& record);
// Reads the JSON object of a record. Throws Error if `json` is not the JSON object of a record; the message says why.
Record record_from_json(std::string_view json);
// The point as a JSON object, such as {"gate":"pre","seed":0}.
std::string to_json(const Point& point);
// The values of a step as a JSON object, such as {"step":0,"loss":2.3}. If the trial ended in this step, the object
// also has the reason. A line of metrics.jsonl contains this object together with the axes of the trial.
std::string to_json(const StepValues& step, Status status);
// The record that reading the JSON of `record` would give: values that are not finite become NaN.
Record as_read(Record record);

// The names of all values of the records, in order of first appearance.
std::vector<std::string> measured_names(const std::vector<Record>& records);

}  // namespace plumb::lab
