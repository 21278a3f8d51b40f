// The rules of the conformance kit (gate_check.h), which says what each asks for.
#pragma once

#include <string>
#include <vector>

#include "nn/gates/gate.h"

namespace plumb::nn {

struct RuleOutcome {
  bool passed;
  std::string detail;  // the measure, or what is wrong and what to do
};

struct GateRule {
  std::string name;
  // Throws what the method throws.
  RuleOutcome (*check)(const GateChoice& gate);
};

// In the order in which they are checked.
std::vector<GateRule> gate_rules();

}  // namespace plumb::nn
