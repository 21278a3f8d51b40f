#include "experiments/lab/signals/layer_probe.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "experiments/lab/signals/probe_json.h"

namespace plumb::lab {

AroundStep passports(Arm& arm, const nn::Stack& stack, std::int64_t count) {
  const std::int64_t interval = std::max<std::int64_t>(1, arm.steps() / count);
  return [&arm, &stack, interval](std::int64_t step) -> std::function<void(const Gradients&)> {
    if (step % interval != 0 && step + 1 != arm.steps()) return nullptr;
    return [&arm, step, probe = std::make_shared<PassportProbe>(stack)](const Gradients& g) {
      arm.attach(fmt::format(R"({{"step":{},"passport":{}}})", step, to_json(probe->finish(g))));
    };
  };
}

std::vector<StepPassport> passports_of(const Record& record) {
  std::vector<StepPassport> found;
  for (const std::string& text : record.attachments) {
    const auto json = nlohmann::json::parse(text);
    if (json.contains("passport")) found.push_back({json.at("step"), passport_from_json(json.at("passport").dump())});
  }
  return found;
}

}  // namespace plumb::lab
