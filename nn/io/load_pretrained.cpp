// Loads the weights of a file into a model that may have another image size, other classes or new gates.
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <nlohmann/json.hpp>

#include "autograd/ops.h"
#include "core/json_text.h"
#include "nn/gates/method_text.h"
#include "nn/io/model_card_parts.h"
#include "nn/io/positions.h"
#include "nn/io/weights.h"

namespace plumb::nn {
namespace {

using Json = nlohmann::ordered_json;

struct Destination {
  std::int64_t side, prefix;
  KeyMap timm;
};
Destination destination_of(const Classifier& model) {
  const std::optional<ModelCard> card = card_of(model);
  check(card.has_value(), "[load_pretrained] expected a ViT or a CaiT, got {}", *model.path());
  const auto* const vit = std::get_if<ViTOptions>(&card->options);
  return {card->image() / card->patch(), vit && vit->pool == Pool::token && vit->token_block == 0,
          vit ? timm_vit(vit->channels) : timm_cait(card->channels())};
}

// Sets NewGate::start of each gate: to `factor` for parameters that multiply the branch or the skip (Gate::scales), and
// to the initial value for other parameters.
void choose_starts(std::vector<NewGate>& new_gates, Classifier& model, double factor) {
  Tensors factors;
  model.each_module([&](Module& module) {
    if (const auto* gate = dynamic_cast<const Gate*>(&module))
      for (const Tensor& scale : gate->scales()) factors.push_back(scale);
  });
  for (NewGate& gate : new_gates) {
    const Tensor& value = gate.parameter.value;
    const bool is_factor = std::ranges::any_of(
        factors, [&](const Tensor& scale) { return scale.array().shares_buffer_with(value.array()); });
    gate.start =
        is_factor ? full(value.shape(), factor, {.dtype = value.dtype(), .device = value.device()}) : value.detach();
  }
}

// Returns advice for weights that do not match the model, for the case that the names alone give no advice. The advice
// names the constants that decide the set of parameters and that the file's metadata lacks. If there are no such
// constants, the advice names the method of the file.
std::string advice_on_method(const Classifier& model, const TensorFile& file, const std::string& path,
                             const std::string& message) {
  const auto written = file.metadata.find(metadata_key);
  if (written == file.metadata.end()) return "";
  try {
    const MethodText text =
        method_text(Json::parse(shallow_json(written->second, metadata_key)).at("gate").get<std::string>());
    const ModelCard here = *card_of(model);
    const Method& ours = method_of(here);
    std::vector<std::string> names, values;
    std::string option = text.name;
    for (const MethodConstant& c : ours.constants)
      if (ours.name == text.name && c.affects == Affects::parameters && !text.values.contains(c.name)) {
        names.push_back(c.name), values.push_back(c.text(ours.value(c.name)));
        option += fmt::format(":{}=VALUE", c.name);
      }
    if (!names.empty())
      return fmt::format(
          "; its metadata, from an older version, lacks {} of its method {}, and the model has {}; if the file was "
          "made with another value, give it: --gate {} in programs, nn::card_of(file, path, {{}}, \"{}\") in code",
          fmt::join(names, ", "), text.name, fmt::join(values, ", "), option, option);
    if (message.find("--gate") != std::string::npos) return "";
    const ModelCard there = card_of(file, path);
    const std::string label = method_of(there).label();
    if (label == ours.label()) return "";
    return fmt::format(
        "; the file has the method {0}, the model has {1}: make the model with {{.method = \"{0}\"}} (--gate {0})",
        label, ours.label());
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace

std::string Adapted::text() const {
  const std::string why = reasons.empty() ? "" : fmt::format(": {}", fmt::join(reasons, "; "));
  const std::string same =
      !same_function   ? "it is not known whether the model computes the same function as the file's network" + why
      : *same_function ? "the model computes the same function as the file's network"
                       : "the model does not compute the same function as the file's network" + why;
  return skipped.empty()
             ? same
             : fmt::format("{}; tensors of dtypes that Plumb does not read are left out: {}", same, skipped);
}

Adapted load_pretrained(Classifier& model, const TensorFile& file, const std::string& path, Adaptation adaptation) {
  const Destination destination = destination_of(model);
  NamedTensors from = file.tensors;
  const auto patches = from.find("patch_embed.proj.weight");
  const KeyMap map = patches != from.end() && patches->second.shape().rank() == 4 ? destination.timm : KeyMap();
  const NamedTensors to = weights(model, map);
  check_not_skipped(to, file, path);
  Adapted adapted;
  adapted.skipped = skipped_text(file);
  const auto ours = to.find("pos_embed");
  if (const auto given = from.find("pos_embed"); given != from.end() && ours != to.end()) {
    if (const Shape s = given->second.shape(); s.rank() == 3 && lacks_token_position(s[1], destination.prefix == 1))
      given->second = concat({slice(given->second, 1, 0, 1) * 0.0, given->second}, 1);
    const Shape theirs = given->second.shape();
    if (theirs.rank() == 3 && theirs != ours->second.shape() && theirs[2] == ours->second.dim(2)) {
      adapted.positions_from = side_of(theirs[1] - destination.prefix, path);
      given->second = resized_positions(given->second, destination.prefix, destination.side);
    }
  }
  if (adaptation.new_head)
    for (const char* name : {"head.weight", "head.bias"})
      if (from.contains(name) && to.contains(name) && from.at(name).shape() != to.at(name).shape()) {
        from.erase(name);
        adapted.as_initialised.push_back(name);
      }
  if (!adapted.as_initialised.empty()) adapted.reasons.push_back("the head is new");
  if (adapted.positions_from)
    adapted.reasons.push_back(fmt::format("positions of {0} x {0} patches are resized to {1} x {1}",
                                          *adapted.positions_from, destination.side));
  std::vector<NewGate> new_gates;
  if (adaptation.new_gates)
    for (const Parameter& p : model.parameters())
      if (const std::string name = name_under(map, p.name); !from.contains(name)) {
        if (p.role == Role::gate) new_gates.push_back({.name = name, .parameter = p});
        // A new gate may ask for the training step, which the file then lacks.
        if (p.role == Role::gate || p.role == Role::counter) adapted.as_initialised.push_back(name);
      }
  const bool lacks = std::ranges::any_of(to, [&](const auto& entry) {
    return !from.contains(entry.first) &&
           std::ranges::find(adapted.as_initialised, entry.first) == adapted.as_initialised.end();
  });
  choose_starts(new_gates, model, adaptation.gate_start.value_or(1));
  FunctionComparison compared = compare_functions(*card_of(model), file, path, new_gates, adaptation);
  adapted.same_function = adapted.reasons.empty() ? compared.same : false;
  std::ranges::move(compared.reasons, std::back_inserter(adapted.reasons));
  try {
    assign(to, from, fmt::format("[load_pretrained] {}", path), {.allow_missing = !lacks});
  } catch (const Error& e) {
    throw Error(std::string(e.what()) + advice_on_method(model, file, path, e.what()));
  }
  // The lines below must not throw, because the model has already changed.
  for (const NewGate& gate : new_gates) copy_into(gate.start.array(), gate.parameter.value.array());
  return adapted;
}

}  // namespace plumb::nn
