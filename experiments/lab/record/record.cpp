#include "experiments/lab/record/record.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/json_text.h"
#include "core/one_line.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json point_json(const Point& point) {
  Json json = Json::object();
  for (const auto& [axis, value] : point.entries())  // clang 16 with OpenMP captures no structured binding by [&]
    std::visit([&json, &axis = axis](const auto& v) { json[axis] = v; }, value);
  return json;
}

Point point_from(const Json& json) {
  Point point;
  for (const auto& [axis, value] : json.items()) {
    if (value.is_number_integer())
      point.set(axis, value.get<std::int64_t>());
    else if (value.is_number())
      point.set(axis, value.get<double>());
    else
      point.set(axis, printable(value.get<std::string>()));
  }
  return point;
}

Json step_json(const StepValues& step, Status status) {
  Json json{{"step", step.step}};
  for (const auto& [name, value] : step.values) json[name] = value;  // nlohmann-json writes NaN and infinity as null
  if (step.ended.empty()) return json;
  if (status == Status::failed) {
    json["failure"] = step.ended;
  } else {
    json["diverged_at"] = step.step;
    json["divergence"] = step.ended;
  }
  return json;
}

StepValues step_from(const Json& json) {
  StepValues step{.step = json.at("step")};
  for (const auto& [name, value] : json.items()) {
    if (name == "divergence" || name == "failure")
      step.ended = printable(value.get<std::string>());
    else if (name != "step" && name != "diverged_at" && !value.is_string())
      step.values.emplace_back(name, value.is_null() ? unknown : value.get<double>());
  }
  return step;
}

}  // namespace

double value_of(const Values& values, std::string_view name) {
  const auto entry = std::ranges::find(values, name, &Values::value_type::first);
  return entry == values.end() ? unknown : entry->second;
}

void set_value(Values& values, const std::string& name, double value) {
  const auto entry = std::ranges::find(values, name, &Values::value_type::first);
  if (entry == values.end())
    values.emplace_back(name, value);
  else
    entry->second = value;
}

double Record::outcome(std::string_view name) const {
  if (status == Status::diverged || status == Status::hopeless) return std::numeric_limits<double>::infinity();
  const double found = status == Status::failed ? unknown : value(name);
  return std::isfinite(found) ? found : unknown;
}

double Record::value(std::string_view name) const {
  return name == "steps" ? static_cast<double>(steps) : name == "seconds" ? seconds : value_of(values, name);
}

std::string to_json(const Point& point) { return dumped(point_json(point)); }

std::string to_json(const Record& r) {
  Json json{{"arm", point_json(r.point)}, {"status", enum_name(r.status)}, {"steps", r.steps}, {"seconds", r.seconds}};
  if (!r.reason.empty()) json["reason"] = r.reason;
  if (r.diverges_from >= 0) json["diverges_from"] = r.diverges_from;
  if (r.weights_saved) json["weights_saved"] = *r.weights_saved;
  if (!r.model.empty()) json["model"] = Json::parse(r.model);
  json["values"] = Json::object();
  for (const auto& [name, value] : r.values)
    json["values"][name] = value;  // nlohmann-json writes NaN and infinity as null
  json["metrics"] = Json::array();
  for (const StepValues& step : r.metrics) json["metrics"].push_back(step_json(step, r.status));
  json["attachments"] = Json::array();
  for (const std::string& object : r.attachments) json["attachments"].push_back(Json::parse(object));
  return dumped(json);
}

Record record_from_json(std::string_view text) {
  try {
    const Json json = Json::parse(shallow_json(text, "record"));
    Record r{.point = point_from(json.at("arm")),
             .steps = json.at("steps"),
             .seconds = json.at("seconds"),
             .reason = printable(json.value("reason", "")),
             .diverges_from = json.value("diverges_from", std::int64_t{-1})};
    check(r.steps >= 0 && r.diverges_from >= -1,
          "expected steps of at least 0 and a first bad step of at least -1, got {} and {}", r.steps, r.diverges_from);
    r.status = enum_named<Status>("status", json.at("status"));
    if (json.contains("weights_saved")) r.weights_saved = json["weights_saved"].get<bool>();
    if (json.contains("model")) r.model = dumped(json["model"]);
    for (const auto& [key, value] : json.at("values").items())
      r.values.emplace_back(printable(key), value.is_null() ? unknown : value.get<double>());
    for (const Json& step : json.at("metrics")) r.metrics.push_back(step_from(step));
    for (const Json& object : json.at("attachments")) r.attachments.push_back(dumped(object));
    return r;
  } catch (const std::exception& e) {
    fail(fmt::format("expected the record of a trial as one JSON object: {}", e.what()));
  }
}

std::string to_json(const StepValues& step, Status status) { return dumped(step_json(step, status)); }

Record as_read(Record record) {
  const auto read = [](Values& values) {
    for (auto& [name, value] : values)
      if (!std::isfinite(value)) value = unknown;
  };
  read(record.values);
  for (StepValues& step : record.metrics) read(step.values);
  return record;
}

std::vector<std::string> measured_names(const std::vector<Record>& records) {
  std::vector<std::string> names;
  for (const Record& r : records)
    for (const auto& [name, value] : r.values)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

}  // namespace plumb::lab
