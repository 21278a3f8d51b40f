// run.json, the description of a study folder: the program, data and settings of the study.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/json_value.h"
#include "experiments/lab/record/machine.h"

namespace plumb::lab {

// The part of run.json that does not depend on the call: run.json without the settings and the facts about the call.
struct StudyFacts {
  Machine machine = {};
  DataFacts data = {};
  std::string code = {};                  // the value of code_hash()
  RateCriterion rates_by = {};            // the value that chooses learning rates, if a search does
  std::vector<std::string> outputs = {};  // further files that this experiment writes
  // The names of the claims of this call, from which a new folder takes StudyDescription::claims. parse() leaves the
  // vector empty.
  std::vector<std::string> claims = {};
};

// Throws Error unless DataFacts::further is empty, or an object without the names that run.json uses for other facts.
void check_further(const DataFacts& data);

// The present rule of judging (docs/statistics.md).
inline constexpr const char* rule_of_judging = "bets";

// The content of run.json.
struct StudyDescription {
  std::string experiment = {}, version = {}, commit = {}, build = {};
  std::string program = {};  // name of the program that ran the study, which is only shown and never executed
  StudyFacts facts = {};
  std::string command_line = {}, started = {};
  JsonValue settings = {};  // an object
  // The names of the settings that decide the results of trials. These settings must be equal in all folders that are
  // merged and in all calls that resume the study.
  std::vector<std::string> fixed = {};
  // The code hashes of further trials in the tables, in addition to facts.code.
  std::vector<std::string> accepted_code = {};
  // The names of the claims (Claim::name) that the study had when its folder was made. A claim with another name was
  // added later.
  std::vector<std::string> claims = {};
  // The rule by which rates are chosen and trials are judged; empty for folders that are older than the rule. The
  // trials of such folders have no verdicts.
  std::string rule = {};

  std::string text() const;  // the JSON text of run.json
  // Reads the text of run.json. Throws UsageError if `text` is not the text of a run.json; the message begins with
  // `file`.
  static StudyDescription parse(const std::string& text, const std::string& file);
};

}  // namespace plumb::lab
