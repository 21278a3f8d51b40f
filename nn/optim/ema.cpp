#include "nn/optim/ema.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "autograd/node.h"
#include "core/backend.h"
#include "core/memory.h"
#include "core/names.h"

namespace plumb::nn {

Ema::Ema(const Module& model, const EmaOptions& options)
    : model_(model), parameters_(model.parameters()), options_(options) {
  check(0 <= options.decay && options.decay <= 1, "[ema] expected a decay in 0..1, got {}", options.decay);
  std::unordered_map<const Node*, const std::string*> seen;
  for (const Parameter& p : parameters_) {
    const auto [entry, fresh] = seen.emplace(p.value.node().get(), &p.name);
    check(fresh, "[ema] expected each parameter once, got the same one as {} and {}", *entry->second, p.name);
    const Array& weight = p.value.array();
    averages_.push_back(empty_like(weight));
    copy_into(weight, averages_.back());
    if (!in_host_memory(weight.device()) && (!held_.defined() || held_.size_in_bytes() < weight.size_in_bytes()))
      held_ = Array(Shape{static_cast<std::int64_t>(weight.size_in_bytes())}, DType::u8, weight.device());
  }
}

void Ema::check_model() const {
  const std::vector<Parameter> now = model_.parameters();
  const auto same = [](const Parameter& a, const Parameter& b) {
    return a.name == b.name && a.value.node() == b.value.node();
  };
  if (std::ranges::equal(now, parameters_, same)) return;
  std::vector<std::string> replaced, added, removed;
  for (const Parameter& p : now) {
    const auto was = std::ranges::find(parameters_, p.name, &Parameter::name);
    if (was == parameters_.end())
      added.push_back(p.name);
    else if (!same(*was, p))
      replaced.push_back(p.name);
  }
  for (const Parameter& p : parameters_)
    if (std::ranges::find(now, p.name, &Parameter::name) == now.end()) removed.push_back(p.name);
  std::vector<std::string> changes;
  for (const auto& [change, names] : {std::pair("replaced", replaced), {"added", added}, {"removed", removed}})
    if (!names.empty()) changes.push_back(fmt::format("{} {}: {}", names.size(), change, some_of(names)));
  check(changes.empty(),
        "[ema] expected the parameters that {} had when its average was made, got {}; make the average after the model "
        "is complete",
        *model_.path(), fmt::join(changes, "; "));
}

void Ema::update() {
  check(!swapped_,
        "[ema] expected update() while the weights are in place, got it while the averages are in place: end the "
        "EmaScope first");
  check_model();
  const auto t = static_cast<double>(updates_++);
  const double decay = options_.warm_up ? std::min(options_.decay, (1 + t) / (10 + t)) : options_.decay;
  std::vector<EmaUpdate> all;
  const auto flush = [&] {
    if (!all.empty()) kernels(all.front().average).ema(1 - decay, std::exchange(all, {}));
  };
  for (std::size_t i = 0; i < averages_.size(); ++i) {
    const Array& weight = parameters_[i].value.array();
    Array& average = averages_[i];
    if (parameters_[i].role == Role::counter) {
      copy_into(weight, average);
      continue;
    }
    const bool same_kind = all.empty() || (all.front().average.dtype() == average.dtype() &&
                                           all.front().average.device() == average.device());
    if (!same_kind) flush();
    all.push_back({weight, Out(average)});
  }
  flush();
}

void Ema::swap() {
  if (!swapped_) check_model();  // the second swap must not throw, because the destructor of EmaScope calls swap()
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
  check(!ema.swapped(),
        "[ema] expected an EmaScope while the weights are in place, got one while the averages are in place: end the "
        "other EmaScope first");
  ema_.swap();
}

NamedTensors Ema::averages() const {
  check(!swapped_,
        "[ema] expected its state to be saved or loaded while the weights are in place, got it while the averages are "
        "in place: end the EmaScope first");
  check_model();
  NamedTensors all;
  for (std::size_t i = 0; i < averages_.size(); ++i)
    all.emplace(parameters_[i].name + ".average", Tensor(averages_[i]));
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
