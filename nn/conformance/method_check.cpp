#include "nn/conformance/method_check.h"

#include <algorithm>
#include <map>

#include "core/device_lost.h"
#include "nn/conformance/rules.h"

namespace plumb::nn {
namespace {

// Returns the message of an error without numbers and without the lines about the place of the error.
std::string kind_of(std::string message) {
  message = message.substr(0, message.find('\n'));
  std::erase_if(message, [](char c) { return ('0' <= c && c <= '9') || c == ' ' || c == ','; });
  return message;
}

}  // namespace

bool MethodReport::passed() const { return std::ranges::all_of(rules, &RuleResult::passed); }

std::string MethodReport::text() const {
  std::string text = fmt::format("{}\n", method);
  for (const RuleResult& r : rules)
    text += fmt::format("  {:<7} {:<20} {}\n", r.passed ? "ok" : "FAILED", r.rule, r.detail);
  return text;
}

MethodReport check_method(const MethodChoice& method, const std::vector<std::uint32_t>& steps) {
  check(!steps.empty(), "[check_method] expected at least one training step, got none");
  const RandomScope first_step({.seed = 1, .step = steps.front()});
  MethodReport report{method->label(), {}};
  // For each kind of error: the index of the first rule with this error, and the number of later rules with this error.
  std::map<std::string, std::pair<std::size_t, int>> errors;
  for (const auto& [rule, check_rule] : rules::all_rules(steps)) {
    if (rule == "second order" && report.rules.back().rule == "gradients" && !report.rules.back().passed)
      continue;  // the failure of "second order" follows from the failure of "gradients"
    rules::Outcome outcome{};
    try {
      outcome = check_rule(method);
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
