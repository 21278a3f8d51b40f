#include "nn/models/deep_mlp.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

const DeepMlpOptions& checked(const DeepMlpOptions& o) {
  check(std::ranges::find(deep_mlp_methods(), o.method) != deep_mlp_methods().end(),
        "[deep_mlp] expected one of the methods {}, got \"{}\"", fmt::join(deep_mlp_methods(), ", "), o.method);
  check(o.inputs > 0 && o.width > 0 && o.depth > 0 && o.classes > 0,
        "[deep_mlp] expected positive inputs, width, depth and classes, got {}, {}, {} and {}", o.inputs, o.width,
        o.depth, o.classes);
  return o;
}

double default_bound(std::int64_t fan_in) { return 1 / std::sqrt(static_cast<double>(fan_in)); }

// He's normal distribution, std sqrt(2 / fan_in), expressed as a gain of Xavier's normal distribution.
Init he_normal(std::int64_t in, std::int64_t out) {
  return Init::xavier_normal(std::sqrt((static_cast<double>(in) + static_cast<double>(out)) / static_cast<double>(in)));
}

}  // namespace

const std::vector<std::string>& deep_mlp_methods() {
  static const std::vector<std::string> names{"vanilla", "residual", "layer_norm", "rezero"};
  return names;
}

class DeepMlp::Hidden : public Layer {
 public:
  Hidden(const std::string& method, std::int64_t width, const LayerNorm* norm)
      : Layer("Hidden"),
        linear_({.in = width, .out = width, .init = Init::xavier_normal(method == "residual" ? 0.5 : std::sqrt(2.0))}),
        norm_(norm),
        adds_(method == "residual" || method == "rezero") {
    child("linear", linear_).own("bias").init = Init::uniform(default_bound(width));
    if (method == "rezero") alpha_ = parameter("alpha", {1}, Init::constant(0), Role::gate);
  }

 protected:
  Tensor forward(const Tensor& x) const override {
    const Tensor f = relu(linear_(x));
    if (adds_) return gated_residual(x, f, alpha_);
    return norm_ ? (*norm_)(f) : f;
  }

 private:
  Linear linear_;
  const LayerNorm* norm_;  // the network's shared norm, or null
  Tensor alpha_;
  bool adds_;
};

DeepMlp::DeepMlp(const DeepMlpOptions& o)
    : Layer("DeepMlp"),
      options_(checked(o)),
      first_({.in = o.inputs, .out = o.width, .init = he_normal(o.inputs, o.width)}),
      last_({.in = o.width, .out = o.classes, .init = Init::fan_in_uniform()}) {
  child("first", first_).own("bias").init = Init::uniform(default_bound(o.inputs));
  if (o.method == "layer_norm") child("norm", norm_.emplace(o.width, 1e-5));
  for (std::int64_t i = 0; i < o.depth; ++i)
    child(fmt::format("hidden.{}", i),
          *hidden_.emplace_back(std::make_unique<Hidden>(o.method, o.width, norm_ ? &*norm_ : nullptr)));
  child("last", last_).own("bias").init = Init::uniform(default_bound(o.width));
  initialize(*this, o.seed);
}

DeepMlp::~DeepMlp() = default;

Tensor DeepMlp::first(const Tensor& x) const {
  check(x.shape().rank() >= 1 && x.numel() == extent_product("deep_mlp", {x.dim(0), options_.inputs}),
        "[deep_mlp] expected samples [B, ..] of {} elements, got {}", options_.inputs, x.shape());
  return relu(first_(reshape(x, {x.dim(0), options_.inputs})));
}

Tensor DeepMlp::hidden(const Tensor& x) const {
  Tensor h = x;
  for (const auto& layer : hidden_) h = (*layer)(h);
  return h;
}

Tensor DeepMlp::forward(const Tensor& x) const { return last_(hidden(first(x))); }

}  // namespace plumb::nn
