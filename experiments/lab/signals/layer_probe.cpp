#include "experiments/lab/signals/layer_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* key = "passport";  // the name of layer statistics in ledgers

// The last stack of blocks at or below a model.
const nn::Stack& last_stack(nn::Module& model) {
  const nn::Stack* last = nullptr;
  model.each_module([&](nn::Module& m) {
    if (const auto* stack = dynamic_cast<const nn::Stack*>(&m)) last = stack;
  });
  check(last,
        "[layers] expected a model with an nn::Stack of blocks, whose layers are measured, got {}; leave out "
        "Study::measure_layers() or record_layers()",
        *model.path());
  return *last;
}

}  // namespace

Observer record_layers(Trial& trial, nn::Module& model, std::int64_t every) {
  struct Recorded {
    std::int64_t step;
    SignalProbe probe;
  };
  const std::int64_t interval = every > 0 ? every : std::max<std::int64_t>(1, trial.steps() / 10);
  const nn::Stack& stack = last_stack(model);
  const auto now = std::make_shared<std::unique_ptr<Recorded>>();
  return {.before =
              [&trial, &stack, interval, now](std::int64_t step) {
                now->reset();  // a step without an update left its probe
                if (step % interval == 0 || step + 1 == trial.steps())
                  now->reset(new Recorded{step, SignalProbe(stack)});
              },
          .after =
              [&trial, now](const Gradients& gradients) {
                if (*now) attach_layers(trial, (*now)->step, (*now)->probe.finish(gradients));
                now->reset();
              }};
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
