// The rules that check_gate() checks. gate_check.h describes them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "nn/gates/gate.h"
#include "nn/gates/gate_check.h"

namespace plumb::nn {

// The outcome of one rule for one method.
struct RuleOutcome {
  bool passed;
  std::string detail;  // the measured value, or the failure and its remedy
};

// One rule and its name.
struct GateRule {
  std::string name;
  // Checks the rule. Exceptions from the code of the method leave this function.
  std::function<RuleOutcome(const GateChoice& gate)> check;
};

// Returns all rules, in the order in which check_gate() checks the rules.
std::vector<GateRule> gate_rules(const CheckGateOptions& options);

}  // namespace plumb::nn
