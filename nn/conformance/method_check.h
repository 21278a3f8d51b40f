// Checks on small networks that a residual method fulfils the rules for all methods. check_method() needs only the name
// of the method.
//
//   nn::register_method<TanhGate>("tanh_gate", {...});
//   const nn::MethodReport report = nn::check_method("tanh_gate");   // report.passed(), report.text()
//
// The option --check-gates of the study depth_stability runs these checks, also in a program that adds custom gates.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/gates/method.h"

namespace plumb::nn {

// The result of one rule.
struct RuleResult {
  std::string rule;
  bool passed;
  std::string detail;  // the measured value, or the failure and its remedy
};

// The results of all rules for one method.
struct MethodReport {
  std::string method;
  std::vector<RuleResult> rules;

  bool passed() const;  // whether every rule passed
  // Returns the report as text, with one line for each rule.
  std::string text() const;
};

// Checks a method. docs/own_gates.md describes the rules. The check takes well below a second, and writes and removes
// one temporary file. If a rule fails with the same error as an earlier rule, the report does not list the later rule.
// The entry of the earlier rule states the number of such rules. `steps` are the training steps of the rules "steps"
// and "gradients"; all other rules begin at the first of these steps. Throws Error if `steps` is empty.
MethodReport check_method(const MethodChoice& method, const std::vector<std::uint32_t>& steps = {0, 10, 1000});

}  // namespace plumb::nn
