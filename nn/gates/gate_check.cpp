#include "nn/gates/gate_check.h"

#include <algorithm>
#include <map>

#include "core/bfloat16.h"
#include "nn/gates/rules/rules.h"

namespace plumb::nn {
namespace {

// Returns the message of an error without numbers and without the lines about the place of the error.
std::string kind_of(std::string message) {
  message = message.substr(0, message.find('\n'));
  std::erase_if(message, [](char c) { return ('0' <= c && c <= '9') || c == ' ' || c == ','; });
  return message;
}

}  // namespace

double unchanged_in_bf16(const std::vector<double>& stream, const std::vector<double>& added) {
  check(stream.size() == added.size() && !stream.empty(),
        "[unchanged_in_bf16] expected the same number of elements in both, got {} and {}", stream.size(), added.size());
  std::size_t unchanged = 0;
  for (std::size_t i = 0; i < stream.size(); ++i) {
    const float x = bfloat16(stream[i]), branch = bfloat16(added[i]);
    unchanged += added[i] != 0 && bfloat16(static_cast<double>(x) + static_cast<double>(branch)) == x;
  }
  return static_cast<double>(unchanged) / static_cast<double>(stream.size());
}

bool GateReport::passed() const { return std::ranges::all_of(rules, &RuleResult::passed); }

std::string GateReport::text() const {
  std::string text = fmt::format("{}\n", gate);
  for (const RuleResult& r : rules)
    text += fmt::format("  {:<7} {:<20} {}\n", r.passed ? "ok" : "FAILED", r.rule, r.detail);
  return text;
}

GateReport check_gate(const GateChoice& gate, const CheckGateOptions& options) {
  check(!options.steps.empty(), "[check_gate] expected at least one training step, got none");
  const RandomScope first_step({.seed = 1, .step = options.steps.front()});
  GateReport report{gate->label(), {}};
  // For each kind of error: the index of the first rule with this error, and the number of later rules with this error.
  std::map<std::string, std::pair<std::size_t, int>> errors;
  for (const auto& [rule, check_rule] : rules::all_rules(options)) {
    if (rule == "second order" && report.rules.back().rule == "gradients" && !report.rules.back().passed)
      continue;  // the failure of "second order" follows from the failure of "gradients"
    rules::Outcome outcome{};
    try {
      outcome = check_rule(gate);
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& e) {
      outcome = {false, e.what()};
      const auto [first, is_new] = errors.try_emplace(kind_of(outcome.detail), report.rules.size(), 0);
      if (!is_new) {
        ++first->second.second;
        continue;
      }
      std::ranges::replace(outcome.detail, '\n', ' ');
    }
    report.rules.push_back({rule, outcome.passed, outcome.detail});
    if (rule == "builds" && !outcome.passed) break;  // without a block, no other rule can run
  }
  for (const auto& [kind, where] : errors)
    if (where.second > 0)
      report.rules[where.first].detail +=
          fmt::format(" ({} later rules fail with the same error and are not listed)", where.second);
  return report;
}

}  // namespace plumb::nn
