// Decides whether two networks compute the same function: makes small networks from their cards and compares the
// outputs.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "core/device_lost.h"
#include "core/precision.h"
#include "nn/io/model_card_parts.h"
#include "nn/io/weights.h"
#include "nn/models/card_fields.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

// Returns logit_difference() for networks with `head` channels per head.
std::optional<double> difference_at(const ModelCard& a, const ModelCard& b, const NamedTensors& added,
                                    std::int64_t head) {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::cpu});
  const auto first = small_model(a, head), second = small_model(b, head);
  return output_difference(*first, *second, random_normal({2, 1, 2, 2}, 1, "images"), added);
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

// Returns the text form of the method without the constants that affect only initial values.
std::string text_without_start(const Method& method) {
  std::string text = method.name;
  for (const MethodConstant& c : method.constants)
    if (c.affects != Affects::start) text += ":" + c.text(method.value(c.name));
  return text;
}

// Returns the properties of the network that a file without a card does not state and that are not in `adaptation`,
// with the values of `here`: "GELU, eps are not in the file; taken: GELU erf, eps 1e-06". Returns "" if there are none.
std::string not_stated(const ModelCard& here, const NamedTensors& tensors, const Adaptation& adaptation) {
  const auto* vit = std::get_if<ViTOptions>(&here.options);
  std::vector<std::string> names, values;
  const auto add = [&](bool known, const char* name, const std::string& value) {
    if (!known) names.push_back(name), values.push_back(fmt::format("{} {}", name, value));
  };
  add(adaptation.given_heads || tensors.contains("blocks.0.attn.proj_l.weight"), "heads",
      std::to_string(heads_of(here)));
  add(adaptation.given_gelu, "GELU", gelu_form);
  add(adaptation.given_norm_eps, "eps",
      fmt::format("{:g}", std::visit([](const auto& o) { return o.norm_eps; }, here.options)));
  add(adaptation.given_pool || !vit, "pooling", vit && vit->pool == Pool::mean ? "mean" : "token");
  if (names.empty()) return "";
  return fmt::format("{} {} not in the file; taken: {}", fmt::join(names, ", "), names.size() == 1 ? "is" : "are",
                     fmt::join(values, ", "));
}

FunctionComparison not_known(std::string reason) { return {std::nullopt, {std::move(reason)}}; }

}  // namespace

std::optional<double> output_difference(const Layer& first, const Layer& second, const Tensor& images,
                                        const NamedTensors& added) {
  const PrecisionScope precision(Precision::f32);
  const NoGrad no_grad;
  // Moves the weights away from their initial values, so that no 0 and no 1 hides a term. The changes are small, so
  // that the values of deep networks stay finite.
  for (const Parameter& p : first.parameters()) {
    if (p.role == Role::counter) continue;
    const double scale = 0.1 / std::sqrt(p.value.shape().rank() > 1 ? static_cast<double>(p.value.dim(-1)) : 1);
    copy_into((p.value.detach() + random_normal(p.value.shape(), 1, p.name) * scale).array(), p.value.array());
  }
  NamedTensors from = weights(first);
  const NamedTensors to = weights(second);
  for (const auto& [name, target] : to) {
    const auto value = added.find(name);
    if (value == added.end() || from.contains(name)) continue;
    const std::vector<double> all = value->second.values();
    const bool even = std::ranges::all_of(all, [&](double x) { return x == all.front(); });
    from[name] = even                                      ? full(target.shape(), all.front())
                 : value->second.shape() == target.shape() ? tensor(all, target.shape())
                                                           : target;
  }
  if (from.size() != to.size()) return std::nullopt;
  for (const auto& [name, target] : to)
    if (!from.contains(name) || from.at(name).shape() != target.shape()) return std::nullopt;
  assign(to, from, "[difference]");
  // Networks whose gates follow the training step may agree at one step and differ at another.
  Tensors counters;
  for (const Layer* model : {&first, &second})
    for (const Parameter& p : model->parameters())
      if (p.role == Role::counter) counters.push_back(p.value);
  double worst = 0;
  for (const double step : counters.empty() ? std::vector{0.0} : std::vector{1.0, 10.0, 1000.0}) {
    for (const Tensor& counter : counters) copy_into(full(counter.shape(), step).array(), counter.array());
    const std::vector<double> x = first(images).values(), y = second(images).values();
    double gap = 0, size = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      check(std::isfinite(x[i]) || std::isfinite(y[i]), "both networks give an output that is not finite");
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) return std::numeric_limits<double>::infinity();
      gap = std::max(gap, std::abs(x[i] - y[i]));
      size = std::max(size, std::abs(x[i]));
    }
    worst = std::max(worst, gap == 0 ? 0 : gap / size);
  }
  return worst;
}

std::unique_ptr<Classifier> small_model(ModelCard card, std::int64_t head) {
  std::visit(
      [&](auto& o) {
        o.image = 2, o.channels = 1, o.patch = 1, o.classes = 3, o.dim = o.heads * std::min(head, o.dim / o.heads);
        o.drop_key = {}, o.attention_dropout = 0, o.drop_head = {};
      },
      card.options);
  auto model = make_model(card);
  model->eval();
  return model;
}

std::optional<double> logit_difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added) {
  try {
    return difference_at(a, b, added, 4);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {
    // A custom gate may need the full width. With a small mlp_ratio, a small width has no hidden unit.
    return difference_at(a, b, added, std::numeric_limits<std::int64_t>::max());
  }
}

FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const Adaptation& adaptation) {
  constexpr double rounding = 1e-9;
  const bool described = has_card(file);
  ModelCard there;
  try {
    there = card_of(file, path, heads_of(here), adaptation.method);
  } catch (const Error& e) {
    return not_known(described ? e.what() : "the file has no card, and it is not a file of timm's models");
  }
  if (!described)  // the file does not state its eps, so the model's eps is taken
    std::visit([](auto& o, const auto& ours) { o.norm_eps = ours.norm_eps; }, there.options, here.options);
  const std::string unknown = described ? "" : not_stated(here, file.tensors, adaptation);
  NamedTensors added;
  for (const NewGate& gate : new_gates) added[gate.parameter.name] = gate.start;
  const bool alike = there.options.index() == here.options.index() && heads_of(there) == heads_of(here);
  std::optional<double> gap, gap_of_gates;
  try {
    if (alike) gap = logit_difference(there, here, added);
    if (gap && *gap <= rounding) return unknown.empty() ? FunctionComparison{true, {}} : not_known(unknown);
    if (!described && !gap) return not_known("the file has no card, and has parameters that timm's models lack");
    if (!new_gates.empty()) {  // compares the file's network with itself plus the new gates
      ModelCard gated = there;
      const MethodChoice method = std::visit([](const auto& o) { return o.method; }, here.options);
      std::visit([&](auto& o) { o.method = method; }, gated.options);
      gap_of_gates = logit_difference(there, gated, added);
    }
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception& e) {
    return not_known(fmt::format("the two networks cannot be compared: {}", e.what()));
  }
  FunctionComparison result{false, {}};
  const auto blame = [&](const std::string& reason) { result.reasons.push_back(reason); };
  Json ours = Json::parse(json_of(here)), theirs = Json::parse(json_of(there));
  for (const char* other_function : {"image", "classes", "init", "mean", "std", "class_names"})
    ours.erase(other_function), theirs.erase(other_function);
  ours["gate"] = text_without_start(method_of(here)), theirs["gate"] = text_without_start(method_of(there));
  if (gap_of_gates) {
    if (*gap_of_gates > rounding)
      blame(fmt::format(
          "gates are new: {} starts at {:g} (the logits of a small network change by {:.1g} of the largest logit)",
          new_gates.front().name, new_gates.front().start.values().front(), *gap_of_gates));
    ours.erase("gate"), theirs.erase("gate");
  }
  for (const auto& [key, value] : ours.items()) {
    if (theirs.contains(key) && theirs[key] == value) continue;
    const std::string other = theirs.contains(key) ? text_of(theirs[key]) + " in the file" : "not in the file";
    blame(fmt::format("{} is {} here and {}", key, text_of(value), other));
  }
  for (const auto& [key, value] : theirs.items())
    if (!ours.contains(key)) blame(fmt::format("{} is {} in the file and not set here", key, text_of(value)));
  if (result.reasons.empty())
    blame(fmt::format("the method {} here differs from the method of this name in the table", method_of(here).label()));
  if (!unknown.empty()) blame(unknown);
  return result;
}

}  // namespace plumb::nn
