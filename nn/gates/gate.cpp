#include "nn/gates/gate.h"

#include <algorithm>
#include <cmath>

#include "core/names.h"
#include "nn/layers/norm.h"

namespace plumb::nn {
namespace {

Calibration*& current_calibration() {
  thread_local Calibration* calibration = nullptr;
  return calibration;
}

Tensor difference(const Tensor& skip, const Tensor& combined) {
  check_joined(skip, combined);
  return combined - skip;
}

}  // namespace

void check_joined(const Tensor& skip, const Tensor& combined) {
  check(combined.defined(), "[gate] expected combine to return a stream of shape {}, got an undefined tensor", skip.shape());
  check(combined.shape() == skip.shape(), "[gate] expected combine to return the shape of the stream {}, got {}", skip.shape(), combined.shape());
  check(combined.dtype() == skip.dtype(), "[gate] expected combine to return the stream's dtype {}, got {}; cast() what the gate makes",
        name(skip.dtype()), name(combined.dtype()));
}

Tensor Gate::combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const {
  return gated_residual(skip, difference(skip, combine(skip, branch)), {}, row_scale);
}

Tensor Gate::added(const Tensor& skip, const Tensor& branch) const { return difference(skip, combine(skip, branch)); }

Tensor Gate::values(const Tensor&) const {
  Tensors factors;
  for (const Parameter& p : parameters()) {
    if (p.role != Role::gate) continue;
    if (p.value.shape().rank() > 1) return {};
    factors.push_back(reshape(p.value, {p.value.numel()}));
  }
  return factors.empty() ? Tensor() : concat(factors, 0);
}

void Gate::join(Stream& stream, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const {
  const Tensor joined = mix(stream.x, branch, row_scale);
  check_joined(stream.x, joined);
  stream.x = norm ? (*norm)(joined) : joined;
}

Calibration* calibrating() { return current_calibration(); }

void calibrate(Layer& model, const Tensor& x) {
  struct Pass {  // restores modes and state, whatever the model throws
    explicit Pass(Layer& model) {
      model.each_module([&](Module& m) { modes.emplace_back(&m, m.training()); });
      model.eval();
      outer = std::exchange(current_calibration(), &calibration);
    }
    ~Pass() {
      current_calibration() = outer;
      for (const auto& [module, training] : modes) module->train(training);  // parents first, so that children have the last word
    }
    std::vector<std::pair<Module*, bool>> modes;
    Calibration calibration;
    Calibration* outer;
  };
  const NoGrad no_grad;
  const Pass pass(model);
  model(x);
}

const char* name(Norm norm) {
  constexpr const char* names[] = {"none", "pre", "post"};
  return names[static_cast<int>(norm)];
}

const char* name(Claim claim) {
  constexpr const char* names[] = {"identity at init", "zero branch gradient", "loss ln(classes)"};
  return names[static_cast<int>(claim)];
}

const char* name(Growth growth) {
  constexpr const char* names[] = {"identity", "linear", "harmonic", "geometric", "unstated"};
  return names[static_cast<int>(growth)];
}

const char* name(Base base) {
  constexpr const char* names[] = {"truncated normal, std 0.02", "Xavier uniform; q, k, v apart", "Xavier normal; q, k, v apart",
                                   "Xavier uniform of the packed qkv", "truncated normal, std 0.02 x sqrt(384 / dim)"};
  return names[static_cast<int>(base)];
}

const std::vector<std::string>& base_names() {
  static const std::vector<std::string> names{"truncated_normal", "xavier", "xavier_normal", "xavier_packed", "scaled_normal"};
  return names;
}

Base base_named(const std::string& base_name) { return static_cast<Base>(index_of_name("base", base_names(), base_name)); }

Recipe deit_recipe() { return {.warmup = 5.0 / 300, .source = "Touvron et al. 2021, DeiT: weights of ViT, 5 of 300 epochs of warm-up"}; }

Recipe cait_recipe() {
  Recipe recipe = deit_recipe();
  recipe.source = "Touvron et al. 2021, CaiT, table 1: DeiT's weights and warm-up for all columns";
  return recipe;
}

Recipe recipe_of(const Method& method, const std::optional<Recipe>& given) {
  if (given) return *given;
  Recipe recipe = method.paper;
  recipe.base = Base::truncated_normal;
  return recipe;
}

Init weight_init(Base base, std::int64_t dim, int packed_parts) {
  if (base == Base::truncated_normal) return Init::truncated_normal(0.02);
  if (base == Base::scaled_normal) return Init::truncated_normal(0.02 * std::sqrt(384.0 / static_cast<double>(dim)));
  if (base == Base::xavier_normal) return Init::xavier_normal(1, packed_parts);
  return Init::xavier_uniform(base == Base::xavier ? packed_parts : 1);
}

std::unique_ptr<Layer> make_layer_norm(std::int64_t dim, double eps) { return std::make_unique<LayerNorm>(dim, eps); }

bool Method::claims_that(Claim c) const { return std::ranges::find(claims, c) != claims.end(); }

GateChoice::GateChoice(const std::string& name) : method_(std::make_shared<const Method>(method_named(name))) {}

GateChoice::GateChoice(Method method) : method_(std::make_shared<const Method>(std::move(method))) {
  check(static_cast<bool>(method_->build), "[gate] expected a method that builds gates, got one without");
}

}  // namespace plumb::nn
