// Decides whether two networks compute the same function: makes small networks from their cards and compares the
// outputs.
#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <nlohmann/json.hpp>

#include "autograd/autograd.h"
#include "core/precision.h"
#include "nn/io/model_card_parts.h"
#include "nn/io/weights.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

// Makes a small network for images of 2 x 2 patches, with at most `head` channels per head. The depth, the number of
// heads and all options that decide the function are those of the card.
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

// Returns the number of heads for a file without a card, by timm's rule; no value if the rule does not apply. Models
// with talking heads do not need the rule.
std::optional<std::int64_t> heads_by_rule(const TensorFile& file, const std::string& path) {
  try {
    return heads_of(card_of(file, path));
  } catch (const Error&) {
    return std::nullopt;
  }
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

std::optional<double> logit_difference(const ModelCard& a, const ModelCard& b, const NamedTensors& added) {
  try {
    return difference_at(a, b, added, 4);
  } catch (const DeviceLost&) {
    throw;
  } catch (const std::exception&) {
    // A custom gate or attention may need the full width. With a small mlp_ratio, a small width has no hidden unit.
    return difference_at(a, b, added, std::numeric_limits<std::int64_t>::max());
  }
}

FunctionComparison compare_functions(const ModelCard& here, const TensorFile& file, const std::string& path,
                                     const std::vector<NewGate>& new_gates, const std::string& method) {
  constexpr double rounding = 1e-9;
  const bool described = file.metadata.contains(metadata_key);
  ModelCard there;
  try {
    there = card_of(file, path, heads_of(here), method);
  } catch (const Error& e) {
    return not_known(described ? e.what() : "the file has no card, and it is not a file of timm's models");
  }
  if (!described)
    if (const auto heads = heads_by_rule(file, path); heads != heads_of(here))
      return not_known(fmt::format("the file does not say the number of heads: timm's rule gives {}, the model has {}",
                                   heads ? std::to_string(*heads) : "none for this width", heads_of(here)));
  NamedTensors added;
  for (const NewGate& gate : new_gates) added[gate.parameter.name] = gate.start;
  const bool alike = there.options.index() == here.options.index() && heads_of(there) == heads_of(here);
  std::optional<double> gap, gap_of_gates;
  try {
    if (alike) gap = logit_difference(there, here, added);
    if (gap && *gap <= rounding) return {true, {}};
    if (!described && !gap) return not_known("the file has no card, and has parameters that timm's models lack");
    if (!new_gates.empty()) {  // compares the file's network with itself plus the new gates
      ModelCard gated = there;
      const GateChoice gate = std::visit([](const auto& o) { return o.gate; }, here.options);
      std::visit([&](auto& o) { o.gate = gate; }, gated.options);
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
    const std::string other =
        !theirs.contains(key) ? "not in the file"
        : !described && key == "norm_eps"
            ? fmt::format("{} in timm, because the file does not say its value", text_of(theirs[key]))
            : text_of(theirs[key]) + " in the file";
    blame(fmt::format("{} is {} here and {}", key, text_of(value), other));
  }
  for (const auto& [key, value] : theirs.items())
    if (!ours.contains(key)) blame(fmt::format("{} is {} in the file and not set here", key, text_of(value)));
  if (result.reasons.empty())
    blame(fmt::format("the method {} here differs from the method of this name in the table{}", method_of(here).label(),
                      or_attention(here)));
  return result;
}

}  // namespace plumb::nn
