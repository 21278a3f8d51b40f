#include "nn/gates/gate.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "nn/evaluation_scope.h"
#include "nn/layers/batch_norm.h"
#include "nn/layers/norm.h"

namespace plumb::nn {
namespace {

Calibration*& current_calibration() {
  thread_local Calibration* calibration = nullptr;
  return calibration;
}

constexpr const char* by_depth = "by_depth";

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

Tensor difference(const Tensor& skip, const Tensor& combined) {
  check_joined(skip, combined);
  return combined - skip;
}

}  // namespace

void check_joined(const Tensor& skip, const Tensor& combined) {
  check(combined.defined(), "[gate] expected combine to return a stream of shape {}, got an undefined tensor",
        skip.shape());
  check(combined.shape() == skip.shape(), "[gate] expected combine to return the shape of the stream {}, got {}",
        skip.shape(), combined.shape());
  check(combined.dtype() == skip.dtype(),
        "[gate] expected combine to return the stream's dtype {}, got {}; convert the result with cast()",
        name(skip.dtype()), name(combined.dtype()));
}

Tensor Gate::combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
  return gated_residual(skip, difference(skip, combine(skip, branch)), {}, row_scale);
}

Tensor Gate::added(const Tensor& skip, const Tensor& branch) const { return difference(skip, combine(skip, branch)); }

Tensor Gate::values(const Stream&) const {
  Tensors factors;
  for (const Parameter& p : parameters()) {
    if (p.role != Role::gate) continue;
    if (p.value.shape().rank() > 1) return {};
    factors.push_back(reshape(p.value, {p.value.numel()}));
  }
  return factors.empty() ? Tensor() : concat(factors, 0);
}

void Gate::join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const {
  const Tensor joined = mix(stream.x, branch, row_scale);
  check_joined(stream.x, joined);
  stream.x = norm ? (*norm)(joined) : joined;
}

Calibration* calibrating() { return current_calibration(); }

void calibrate(Layer& model, const Tensor& x) {
  struct CalibrationScope {  // restores the outer calibration even if the model throws
    CalibrationScope() : outer(std::exchange(current_calibration(), &calibration)) {}
    ~CalibrationScope() { current_calibration() = outer; }
    Calibration calibration;
    Calibration* outer;
  };
  const NoGrad no_grad;
  const EvaluationScope evaluation(model);
  const CalibrationScope calibration;
  model(x);
}

const char* name(Norm norm) {
  constexpr const char* names[] = {"none", "pre", "post"};
  return names[static_cast<int>(norm)];
}

const char* name(InitProperty claim) {
  constexpr const char* names[] = {"identity at init", "zero branch gradient", "loss ln(classes)"};
  return names[static_cast<int>(claim)];
}

const char* name(Affects affects) {
  constexpr const char* names[] = {"function", "parameters", "start"};
  return names[static_cast<int>(affects)];
}

const char* name(Growth growth) {
  constexpr const char* names[] = {"identity", "linear", "harmonic", "geometric", "unstated"};
  return names[static_cast<int>(growth)];
}

Recipe deit_recipe() {
  return {.warmup = 5.0 / 300, .source = "Touvron et al. 2021, DeiT: weights of ViT, warm-up in 5 of 300 epochs"};
}

Recipe cait_recipe() {
  Recipe recipe = deit_recipe();
  recipe.source = "Touvron et al. 2021, CaiT, table 1: weights and warm-up of DeiT in all columns";
  return recipe;
}

Recipe recipe_of(const Method& method, const std::optional<Recipe>& given) {
  if (given) return *given;
  Recipe recipe = method.paper;
  recipe.base = Base::truncated_normal;
  return recipe;
}

Tensor per_channel(const Tensor& parameter, Layout layout) {
  const bool spread = layout == Layout::images && parameter.defined() && parameter.shape() != Shape{1};
  return spread ? reshape(parameter, {parameter.numel(), 1, 1}) : parameter;
}

std::unique_ptr<Layer> make_norm(Layout layout, std::int64_t dim, double eps) {
  if (layout == Layout::images) return std::make_unique<BatchNorm2d>(dim, eps);
  return std::make_unique<LayerNorm>(dim, eps);
}

std::unique_ptr<Layer> Method::make_norm(Layout layout, std::int64_t dim, double eps) const {
  if (!norm_layer) return nn::make_norm(layout, dim, eps);
  check(layout == Layout::tokens,
        "[{}] expected a stream of tokens, got images: the norm of the method has no form for images", name);
  std::unique_ptr<Layer> norm_of_method = norm_layer(dim, eps);
  check(norm_of_method != nullptr, "[block] expected norm_layer of method \"{}\" to make a layer, got null", name);
  return norm_of_method;
}

void GateContext::require_tokens(const char* op) const {
  check(layout == Layout::tokens, "[{}] expected a stream of tokens, got images: the method has no form for images",
        op);
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
  return fmt::format("{}={}", name, value ? fmt::format("{}", *value) : by_depth);
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

MethodText method_text(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == ':')
      parts.emplace_back();
    else
      parts.back() += c;
  MethodText method{.name = parts.front()};
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string constant_name = parts[i].substr(0, equals),
                      number = equals == std::string::npos ? "" : parts[i].substr(equals + 1);
    double value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    const bool read = !number.empty() && error == std::errc() && end == number.data() + number.size();
    check(!constant_name.empty() && (read || number == by_depth),
          "[gate] expected NAME:CONSTANT=VALUE, where VALUE is a number or {}, got \"{}\" in \"{}\"", by_depth,
          parts[i], text);
    check(method.values.emplace(constant_name, read ? std::optional(value) : std::nullopt).second,
          "[gate] expected each constant once, got {} twice in \"{}\"", constant_name, text);
  }
  return method;
}

GateChoice::GateChoice(const std::string& text) : method_(std::make_shared<const Method>(method_named(text))) {}

GateChoice::GateChoice(Method method) : method_(std::make_shared<const Method>(std::move(method))) {
  check(static_cast<bool>(method_->build), "[gate] expected a Method with a build function, got one without");
}

}  // namespace plumb::nn
