// The rules that check_gate() checks. docs/own_gates.md describes them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "nn/conformance/networks.h"
#include "nn/gates/method.h"

namespace plumb::nn::rules {

// The outcome of one rule for one method.
struct Outcome {
  bool passed;
  std::string detail;  // the measured value, or the failure and its remedy
};

// One rule and its name.
struct Rule {
  std::string name;
  // Checks the rule. Exceptions from the code of the method leave this function.
  std::function<Outcome(const GateChoice& gate)> check;
};

// Returns all rules, in the order in which check_gate() checks the rules. `steps` are the training steps of the rules
// "steps" and "gradients".
std::vector<Rule> all_rules(const std::vector<std::uint32_t>& steps);

// gradient_rules.cpp
Outcome registered(const GateChoice& gate);
Outcome gradients(const GateChoice& gate, const std::vector<std::uint32_t>& steps);
Outcome second_order(const GateChoice& gate);

// initial_rules.cpp
// A property that the method claims must hold. If a property holds that the method does not claim, the rule only
// reports this property.
Outcome claim(InitProperty property, const GateChoice& gate);
Outcome initial_values(const GateChoice& gate);

// parameter_rules.cpp
Outcome roles(const GateChoice& gate);
Outcome learning(const GateChoice& gate);
Outcome save_and_load(const GateChoice& gate);

// junction_rules.cpp
Outcome stochastic_depth(const GateChoice& gate);
Outcome fused_sum(const GateChoice& gate);
Outcome other_junctions(const GateChoice& gate);

// pass_rules.cpp
Outcome checkpointed(const GateChoice& gate);
Outcome devices(const GateChoice& gate);
Outcome samples(const GateChoice& gate);
Outcome at_steps(const GateChoice& gate, const std::vector<std::uint32_t>& steps);
Outcome deep(const GateChoice& gate);
Outcome bf16(const GateChoice& gate);

// What several rules check.

// Passes if the error is at most `limit`.
Outcome limited(double error, double limit);
// Compares blocks that are computed again in the backward pass with blocks whose activations are kept.
Outcome recomputed(const Shaken& s);
// Takes 5 training steps, and returns the names of the parameters that did not move. `loss` computes the loss of a
// step.
std::vector<std::string> unmoved(const Module& model, const std::function<Tensor()>& loss);

}  // namespace plumb::nn::rules
