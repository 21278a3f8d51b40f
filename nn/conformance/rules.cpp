#include "nn/conformance/rules.h"

namespace plumb::nn::rules {
namespace {

Outcome builds(const MethodChoice& method) {
  const auto stack = make_stack(method);
  return {true, fmt::format("{} parameters in {} blocks", stack->parameter_count(), depth)};
}

Outcome documented(const MethodChoice& method) {
  const bool both = !method->formula.empty() && !method->source.empty();
  return {both, both ? method->formula : "set Method::formula and Method::source"};
}

}  // namespace

Outcome limited(double error, double limit) {
  return {error <= limit, fmt::format("error {:.1e}, limit {:g}", error, limit)};
}

std::vector<Rule> all_rules(const std::vector<std::uint32_t>& steps) {
  const auto claims = [](InitProperty property) {
    return Rule{enum_name(property), [=](const MethodChoice& method) { return claim(property, method); }};
  };
  return {
      {"builds", builds},
      {"registered", registered},
      {"gradients", [=](const MethodChoice& method) { return gradients(method, steps); }},
      {"second order", second_order},
      claims(InitProperty::identity_at_init),
      claims(InitProperty::zero_branch_gradient),
      claims(InitProperty::loss_is_log_classes),
      {"initial values", initial_values},
      {"roles", roles},
      {"learning", learning},
      {"stochastic depth", stochastic_depth},
      {"fused sum", fused_sum},
      {"checkpoint", checkpointed},
      {"junctions", other_junctions},
      {"devices and dtypes", devices},
      {"samples", samples},
      {"save and load", save_and_load},
      {"steps", [=](const MethodChoice& method) { return at_steps(method, steps); }},
      {"depth", deep},
      {"bf16", bf16},
      {"documented", documented},
  };
}

}  // namespace plumb::nn::rules
