#include "experiments/lab/signals/layer_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* key = "passport";  // the name of layer statistics in ledgers

}  // namespace

AroundStep record_layers(Trial& trial, const nn::Stack& stack, std::int64_t every) {
  const std::int64_t interval = every > 0 ? every : std::max<std::int64_t>(1, trial.steps() / 10);
  return [&trial, &stack, interval](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % interval != 0 && step + 1 != trial.steps()) return nullptr;
    return [&trial, step, probe = std::make_shared<SignalProbe>(stack)](const Gradients& g) {
      attach_layers(trial, step, probe->finish(g));
    };
  };
}

void attach_layers(Trial& trial, std::int64_t step, const LayerStats& layers) {
  trial.attach(Json{{"step", step}, {key, to_json(layers)}}.dump());
}

Attached attached_to(const Record& record) {
  Attached found;
  for (const std::string& text : record.attachments) {
    const Json json = Json::parse(text);
    if (json.contains(key)) {
      found.layers.push_back({json.at("step"), layers_from_json(json.at(key))});
    } else if (json.is_object()) {
      for (const auto& [name, value] : json.items())
        if (value.is_string()) found.pictures.emplace_back(name, value.get<std::string>());
    }
  }
  return found;
}

}  // namespace plumb::lab
