#include "experiments/lab/signals/layer_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {

AroundStep passports(Trial& trial, const nn::Stack& stack, std::int64_t count) {
  const std::int64_t interval = std::max<std::int64_t>(1, trial.steps() / count);
  return [&trial, &stack, interval](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % interval != 0 && step + 1 != trial.steps()) return nullptr;
    return [&trial, step, probe = std::make_shared<SignalProbe>(stack)](const Gradients& g) {
      trial.attach(fmt::format(R"({{"step":{},"passport":{}}})", step, to_json(probe->finish(g))));
    };
  };
}

std::vector<StepStats> passports_of(const Record& record) {
  std::vector<StepStats> found;
  for (const std::string& text : record.attachments) {
    const auto json = nlohmann::json::parse(text);
    if (json.contains("passport")) found.push_back({json.at("step"), passport_from_json(json.at("passport").dump())});
  }
  return found;
}

}  // namespace plumb::lab
