#include "experiments/lab/record/study_description.h"

#include <utility>

#include "core/json_text.h"
#include "core/one_line.h"
#include "experiments/lab/console.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

// Without the key, the training loss chose.
RateCriterion rates_by_from(const Json& run) {
  if (!run.contains("rates_by")) return {};
  return {.value = run["rates_by"].at("value"), .better = enum_named<Better>("better", run["rates_by"].at("better"))};
}

// Makes each text printable, in place, because a study folder may come from elsewhere.
void make_printable(Json& json) {
  if (json.is_string()) json = printable(json.get_ref<const std::string&>());
  if (json.is_structured())
    for (Json& item : json) make_printable(item);
}

Json json_of(const std::vector<Measure>& measures) {
  Json all = Json::array();
  for (const Measure& m : measures) {
    Json measure{{"name", m.name}, {"title", m.title}, {"better", enum_name(m.better)}, {"unit", enum_name(m.unit)}};
    if (m.chance) measure["chance"] = *m.chance;
    if (!m.chance_text.empty()) measure["chance_text"] = m.chance_text;
    if (m.resolution > 0) measure["resolution"] = m.resolution;
    if (m.equal_within) measure["equal_within"] = *m.equal_within;
    all.push_back(std::move(measure));
  }
  return all;
}

Json json_of(const std::vector<Reference>& references) {
  Json all = Json::array();
  for (const Reference& r : references)
    all.push_back({{"value", r.value}, {"level", r.level}, {"name", r.name}, {"better", enum_name(r.better)}});
  return all;
}

Json json_of(const DataFacts& data) {
  Json all{{"name", data.name}, {"validation_is", data.validation_is}, {"hash", data.hash}};
  if (!data.further.empty()) all.update(Json::parse(data.further));
  all["measures"] = json_of(data.measures);
  if (!data.references.empty()) all["references"] = json_of(data.references);
  return all;
}

// The names that json_of() writes itself.
constexpr const char* own_names[] = {"name", "validation_is", "hash", "measures", "references"};

// The facts that json_of() does not write itself.
std::string further_from(Json data) {
  for (const char* own : own_names) data.erase(own);
  return data.empty() ? "" : data.dump();
}

std::vector<Reference> references_from(const Json& data) {
  std::vector<Reference> references;
  for (const Json& r : data.value("references", Json::array()))
    references.push_back({.value = r.at("value"),
                          .level = r.at("level"),
                          .name = r.at("name"),
                          .better = enum_named<Better>("better", r.at("better"))});
  return references;
}

std::vector<Measure> measures_from(const Json& data) {
  std::vector<Measure> measures;
  for (const Json& m : data.at("measures"))
    measures.push_back(
        {.name = m.at("name"),
         .title = m.at("title"),
         .better = enum_named<Better>("better", m.at("better")),
         .unit = enum_named<Unit>("unit", m.at("unit")),
         .chance = m.contains("chance") ? std::optional<double>(m["chance"]) : std::nullopt,
         .chance_text = m.value("chance_text", ""),
         .resolution = m.value("resolution", 0.0),
         .equal_within = m.contains("equal_within") ? std::optional<double>(m["equal_within"]) : std::nullopt});
  return measures;
}

}  // namespace

void check_further(const DataFacts& data) {
  if (data.further.empty()) return;
  const Json further = Json::parse(data.further, nullptr, false);
  check(further.is_object(), "[problem] expected facts().further to be the text of a JSON object, got {}",
        one_line(data.further.substr(0, 60)));
  for (const char* own : own_names)
    check(!further.contains(own), "[problem] expected facts().further without the name \"{}\", which run.json has",
          own);
}

std::string StudyDescription::text() const {
  Json run{{"experiment", experiment},
           {"version", version},
           {"commit", commit},
           {"build", build},
           {"code", facts.code},
           {"program", program},
           {"machine", {{"device", facts.machine.device}, {"threads", facts.machine.threads}}},
           {"command_line", command_line},
           {"data", facts.data.text},
           {"data_facts", json_of(facts.data)},
           {"started", started},
           {"outputs", facts.outputs},
           {"settings", settings.json},
           {"fixed", fixed}};
  if (const RateCriterion& by = facts.rates_by; by != RateCriterion())
    run["rates_by"] = {{"value", by.value}, {"better", enum_name(by.better)}};
  run["claims"] = claims;
  if (!rule.empty()) run["rule"] = rule;
  if (!accepted_code.empty()) run["accepted_code"] = accepted_code;
  return run.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

StudyDescription StudyDescription::parse(const std::string& text, const std::string& file) {
  Json run = Json::parse(shallow_json(text, file), nullptr, false);
  const bool ours = run.is_object() && run.contains("experiment") && run["experiment"].is_string() &&
                    run.contains("settings") && run["settings"].is_object();
  usage_check(
      ours,
      "{} does not describe a study; choose another --out. If the folder has a ledger, its trials are not lost: "
      "start the same command with another --out, end it, and copy its run.json to this place",
      file);
  Json settings = run["settings"];  // as they are, because a call compares them with its own
  make_printable(run);
  try {
    const Json &machine = run.at("machine"), &data = run.at("data_facts");
    return {.experiment = run.at("experiment"),
            .version = run.at("version"),
            .commit = run.at("commit"),
            .build = run.at("build"),
            .program = run.at("program"),
            .facts = {.machine = {.device = machine.at("device"), .threads = machine.at("threads")},
                      .data = {.name = data.at("name"),
                               .text = run.at("data"),
                               .validation_is = data.at("validation_is"),
                               .hash = data.at("hash"),
                               .further = further_from(data),
                               .measures = measures_from(data),
                               .references = references_from(data)},
                      .code = run.at("code"),
                      .rates_by = rates_by_from(run),
                      .outputs = run.at("outputs")},
            .command_line = run.at("command_line"),
            .started = run.at("started"),
            .settings = {std::move(settings)},
            .fixed = run.at("fixed"),
            .accepted_code = run.value("accepted_code", std::vector<std::string>()),
            .claims = run.at("claims"),
            .rule = run.value("rule", "")};
  } catch (const Json::exception& e) {
    throw UsageError(fmt::format("{} does not describe a study ({}); choose another --out", file, e.what()));
  }
}

}  // namespace plumb::lab
