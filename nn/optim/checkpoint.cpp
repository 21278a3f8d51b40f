#include "nn/optim/checkpoint.h"

#include "core/class_name.h"
#include "nn/io/safetensors.h"
#include "nn/io/weights.h"

namespace plumb::nn {
namespace {

constexpr const char* format = "plumb checkpoint 1";

// The tensors whose names begin with "<part>.", under their names without this prefix.
NamedTensors part_of(const NamedTensors& tensors, const std::string& part) {
  NamedTensors found;
  for (const auto& [name, tensor] : tensors)
    if (name.starts_with(part + ".")) found[name.substr(part.size() + 1)] = tensor;
  return found;
}

void add_part(NamedTensors& tensors, const std::string& part, const NamedTensors& of_part) {
  for (const auto& [name, tensor] : of_part) tensors[part + "." + name] = tensor;
}

}  // namespace

NamedTensors training_state(const Module& model, Optimizer& optimizer, const Ema* ema) {
  NamedTensors state;
  add_part(state, "optimizer", optimizer.state());
  add_part(state, "model", copies(weights(model)));
  if (ema) add_part(state, "ema", ema->state());
  return state;
}

void load_training_state(const NamedTensors& state, const std::string& what, Module& model, Optimizer& optimizer,
                         Ema* ema) {
  const NamedTensors of_model = part_of(state, "model"), of_ema = part_of(state, "ema");
  check(of_ema.empty() || ema, "{}: expected a state without averages, got one with averages: pass the Ema", what);
  check(!of_ema.empty() || !ema, "{}: expected a state with averages, got one without", what);
  assign(copies(weights(model)), of_model, what + ", the model");  // nothing changes before all parts are checked
  const NamedTensors former = ema ? ema->state() : NamedTensors();
  try {
    if (ema) ema->load_state(of_ema);
    optimizer.load_state(part_of(state, "optimizer"));
  } catch (const Error& e) {
    if (ema) ema->load_state(former);
    throw Error(fmt::format("{}, {}", what, e.what()));
  } catch (...) {
    if (ema) ema->load_state(former);
    throw;
  }
  assign(weights(model), of_model, what);
}

void save_checkpoint(const std::filesystem::path& path, const Module& model, Optimizer& optimizer, const Ema* ema) {
  write_safetensors(path, {.tensors = training_state(model, optimizer, ema),
                           .metadata = {{"format", format}, {"optimizer", class_name(typeid(optimizer))}}});
}

void load_checkpoint(const std::filesystem::path& path, Module& model, Optimizer& optimizer, Ema* ema) {
  const TensorFile file = read_safetensors(path);
  const std::string what = "[load_checkpoint] " + path.string(), own = class_name(typeid(optimizer));
  const auto field = [&](const char* name) {
    const auto found = file.metadata.find(name);
    return found == file.metadata.end() ? std::string() : found->second;
  };
  check(field("format") == format,
        "{}: expected a file of save_checkpoint(), got one of another format; load_weights() reads the weights of a "
        "model",
        what);
  check(field("optimizer") == own, "{}: expected the state of the optimizer {}, got that of {}", what, own,
        field("optimizer"));
  check(file.skipped.empty(), "{}: expected tensors of f32, f64, bf16 or f16, got {}", what, skipped_text(file));
  for (const auto& [name, tensor] : file.tensors)
    check(name.starts_with("model.") || name.starts_with("optimizer.") || name.starts_with("ema."),
          "{}: expected tensors of a model, an optimizer and averages, got {}", what, name);
  for (const auto& [name, value] : weights(model))
    if (const auto saved = file.tensors.find("model." + name); saved != file.tensors.end())
      check(saved->second.dtype() == value.dtype(), "{}: expected {} in {}, got {}", what, name,
            enum_name(value.dtype()), enum_name(saved->second.dtype()));
  load_training_state(file.tensors, what, model, optimizer, ema);
}

}  // namespace plumb::nn
