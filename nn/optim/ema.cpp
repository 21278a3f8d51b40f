#include "nn/optim/ema.h"

#include <algorithm>
#include <utility>

#include "core/backend.h"
#include "core/memory.h"

namespace plumb::nn {

Ema::Ema(std::vector<Parameter> parameters, const EmaOptions& options) : parameters_(std::move(parameters)), options_(options) {
  check(0 <= options.decay && options.decay <= 1, "[ema] expected a decay in 0..1, got {}", options.decay);
  for (const Parameter& p : parameters_) {
    const Array& weight = p.value.array();
    averages_.push_back(empty_like(weight));
    copy_into(weight, averages_.back());
    if (!in_host_memory(weight.device()) && (!held_.defined() || held_.size_in_bytes() < weight.size_in_bytes()))
      held_ = Array(Shape{static_cast<std::int64_t>(weight.size_in_bytes())}, DType::u8, weight.device());
  }
}

void Ema::update() {
  check(!swapped_, "[ema] expected update() with the weights in place, got it while the averages are: end the EmaScope first");
  const auto t = static_cast<double>(updates_++);
  const double decay = options_.warm_up ? std::min(options_.decay, (1 + t) / (10 + t)) : options_.decay;
  std::vector<EmaUpdate> all;
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    all.push_back({parameters_[i].value.array(), averages_[i]});
    const bool last =
        i + 1 == averages_.size() || averages_[i + 1].dtype() != averages_[i].dtype() || averages_[i + 1].device() != averages_[i].device();
    if (last) kernels(averages_[i]).ema(1 - decay, std::exchange(all, {}));
  }
}

void Ema::swap() {
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Out weight(parameters_[i].value.array());
    const std::size_t bytes = weight.size_in_bytes();
    if (in_host_memory(weight.device())) {
      auto* const first = static_cast<std::byte*>(weight.mutable_bytes());
      std::swap_ranges(first, first + bytes, static_cast<std::byte*>(averages_[i].mutable_bytes()));
    } else {
      Memory& memory = memory_of(weight.device());
      memory.copy(weight.address(), Out(held_).mutable_address(), bytes);
      memory.copy(averages_[i].address(), weight.mutable_address(), bytes);
      memory.copy(held_.address(), averages_[i].mutable_address(), bytes);
    }
    weight.bump_version();
  }
  swapped_ = !swapped_;
}

EmaScope::EmaScope(Ema& ema) : ema_(ema) {
  check(!ema.swapped(), "[ema] expected an EmaScope while the weights are in place, got one while the averages are");
  ema_.swap();
}

NamedTensors Ema::averages() const {
  check(!swapped_, "[ema] expected state with the weights in place, got it while the averages are: end the EmaScope first");
  NamedTensors all;
  for (std::size_t i = 0; i < averages_.size(); ++i)
    check(all.emplace(parameters_[i].name + ".average", Tensor(averages_[i])).second,
          "[ema] expected parameters with names of their own to save its state, got two named {}", parameters_[i].name);
  return all;
}

NamedTensors Ema::state() const {
  NamedTensors state = copies(averages());
  state["updates"] = integers({updates_}, {});
  return state;
}

void Ema::load_state(const NamedTensors& state) {
  NamedTensors to = averages();
  const Tensor updates = to["updates"] = integers({0}, {});
  check_counter(state, "updates", "[ema] load_state");
  assign(to, state, "[ema] load_state");
  updates_ = on_host(updates.array()).data<std::int64_t>()[0];
}

}  // namespace plumb::nn
