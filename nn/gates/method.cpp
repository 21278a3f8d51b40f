#include "nn/gates/method.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "nn/layers/batch_norm.h"
#include "nn/layers/norm.h"

namespace plumb::nn {
namespace {

const MethodConstant& declared(const Method& method, const std::string& constant_name) {
  const auto found = std::ranges::find(method.constants, constant_name, &MethodConstant::name);
  if (found != method.constants.end()) return *found;
  std::vector<std::string> names;
  for (const MethodConstant& c : method.constants) names.push_back(c.name);
  fail(names.empty() ? fmt::format("[{}] expected no constant, got \"{}\": the method has no constants", method.name,
                                   constant_name)
                     : fmt::format("[{}] expected a constant of the method ({}), got \"{}\"", method.name,
                                   fmt::join(names, ", "), constant_name));
}

}  // namespace

Recipe recipe_of(const Method& method, const std::optional<Recipe>& given) {
  if (given) return *given;
  Recipe recipe = method.paper;
  recipe.base = Base::truncated_normal;
  return recipe;
}

std::unique_ptr<Layer> make_norm(Layout layout, std::int64_t dim, double eps) {
  if (layout == Layout::images) return std::make_unique<BatchNorm2d>(dim, eps);
  return std::make_unique<LayerNorm>(dim, eps);
}

std::unique_ptr<Layer> Method::make_norm(Layout layout, std::int64_t dim, double eps) const {
  if (!norm_layer) return nn::make_norm(layout, dim, eps);
  if (layout != Layout::tokens)
    throw NotApplicable(fmt::format(
        "[{}] expected a stream of tokens, got images: the norm of the method has no form for images", name));
  std::unique_ptr<Layer> norm_of_method = norm_layer(dim, eps);
  check(norm_of_method != nullptr, "[block] expected norm_layer of method \"{}\" to make a layer, got null", name);
  return norm_of_method;
}

std::unique_ptr<Layer> make_layer_norm(std::int64_t dim, double eps) { return std::make_unique<LayerNorm>(dim, eps); }

std::string MethodConstant::expected() const {
  const bool low = std::isfinite(least), high = std::isfinite(most);
  const std::string kind = whole ? "an integer" : "a number";
  return low && high ? fmt::format("{} in {}{}, {}]", kind, above ? "(" : "[", least, most)
         : low       ? fmt::format("{} {} {}", kind, above ? "above" : "of at least", least)
         : high      ? fmt::format("{} of at most {}", kind, most)
                     : fmt::format("a finite {}", kind.substr(kind.find(' ') + 1));
}

std::string MethodConstant::text(std::optional<double> value) const {
  return fmt::format("{}={}", name, value ? fmt::format("{}", *value) : "by_depth");
}

double GateContext::constant(const std::string& constant_name, std::optional<double> by_depth_value) const {
  const auto found = constants.find(constant_name);
  check(found != constants.end(),
        "[gate] expected a constant that the method declares, got \"{}\"; declare it in Method::constants",
        constant_name);
  const std::optional<double> value = found->second ? found->second : by_depth_value;
  check(
      value.has_value(),
      "[gate] expected a value of the constant \"{}\", got none; set MethodConstant::standard, or pass constant() the "
      "value for this depth",
      constant_name);
  return *value;
}

bool Method::claims_that(InitProperty c) const { return std::ranges::find(claims, c) != claims.end(); }

Method Method::with(const ConstantValues& wanted) const {
  Method m = *this;
  for (const auto& [constant_name, value] : wanted) {
    const MethodConstant& c = declared(*this, constant_name);
    if (value) {
      const bool inside = std::isfinite(*value) && (c.above ? *value > c.least : *value >= c.least) && *value <= c.most;
      check(inside && (!c.whole || *value == std::floor(*value)), "[{}] expected {} to be {}, got {}", name,
            constant_name, c.expected(), *value);
    } else {
      check(!c.standard, "[{}] expected {} to be {}, got by_depth: this constant does not depend on the depth", name,
            constant_name, c.expected());
    }
    if (value == c.standard)
      m.chosen.erase(constant_name);
    else
      m.chosen[constant_name] = value;
  }
  if (m.follow) m.follow(m);
  return m;
}

ConstantValues Method::values() const {
  ConstantValues all = chosen;
  for (const MethodConstant& c : constants) all.try_emplace(c.name, c.standard);
  return all;
}

std::optional<double> Method::value(const std::string& constant_name) const {
  const std::optional<double> standard = declared(*this, constant_name).standard;
  const auto other = chosen.find(constant_name);
  return other == chosen.end() ? standard : other->second;
}

std::string Method::label() const {
  std::string text = name;
  for (const MethodConstant& c : constants)
    if (const auto other = chosen.find(c.name); other != chosen.end()) text += ":" + c.text(other->second);
  return text;
}

std::string Method::text() const {
  std::string text = name;
  for (const MethodConstant& c : constants) text += ":" + c.text(value(c.name));
  return text;
}

MethodChoice::MethodChoice(const std::string& text) : method_(std::make_shared<const Method>(method_named(text))) {}

MethodChoice::MethodChoice(Method method) : method_(std::make_shared<const Method>(std::move(method))) {
  check(static_cast<bool>(method_->build), "[gate] expected a Method with a build function, got one without");
}

}  // namespace plumb::nn
