// The rules that check_method() checks. docs/own_gates.md describes them.
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
  std::function<Outcome(const MethodChoice& method)> check;
};

// Returns all rules, in the order in which check_method() checks the rules. `steps` are the training steps of the rules
// "steps" and "gradients".
std::vector<Rule> all_rules(const std::vector<std::uint32_t>& steps);

// gradient_rules.cpp
Outcome registered(const MethodChoice& method);
Outcome gradients(const MethodChoice& method, const std::vector<std::uint32_t>& steps);
Outcome second_order(const MethodChoice& method);

// initial_rules.cpp
// A property that the method claims must hold. If a property holds that the method does not claim, the rule only
// reports this property.
Outcome claim(InitProperty property, const MethodChoice& method);
Outcome initial_values(const MethodChoice& method);

// parameter_rules.cpp
Outcome roles(const MethodChoice& method);
Outcome learning(const MethodChoice& method);
Outcome save_and_load(const MethodChoice& method);

// junction_rules.cpp
Outcome stochastic_depth(const MethodChoice& method);
Outcome fused_sum(const MethodChoice& method);
Outcome other_junctions(const MethodChoice& method);

// pass_rules.cpp
Outcome checkpointed(const MethodChoice& method);
Outcome devices(const MethodChoice& method);
Outcome samples(const MethodChoice& method);
Outcome at_steps(const MethodChoice& method, const std::vector<std::uint32_t>& steps);
Outcome deep(const MethodChoice& method);
Outcome bf16(const MethodChoice& method);

// What several rules check.

// Passes if the error is at most `limit`.
Outcome limited(double error, double limit);
// Compares blocks that are computed again in the backward pass with blocks whose activations are kept.
Outcome recomputed(const Shaken& s);
// Takes 5 training steps, and returns the names of the parameters that did not move. `loss` computes the loss of a
// step.
std::vector<std::string> unmoved(const Module& model, const std::function<Tensor()>& loss);

}  // namespace plumb::nn::rules
