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

// f(x) = relu(W x + b).
class Dense : public Branch {
 public:
  Dense(const JunctionPlace& place, const Init& init)
      : Branch("Dense", {.kind = "dense"}),
        linear_{this,
                "",
                {.in = place.dim, .out = place.dim, .init = init, .bias_init = Init::uniform(default_bound(place.dim))}} {
  }

 protected:
  Tensor forward(BranchCall& call) const override { return call.leave(relu(call.enter(linear_))); }

 private:
  Child<Linear> linear_;
};

// The gate of methods without a sum: y = f, or y = norm(f).
class NoSkip : public Gate {
 public:
  explicit NoSkip(const Layer* norm) : norm_(norm) {}
  Tensor combine(const Tensor&, const Tensor& branch) const override { return norm_ ? (*norm_)(branch) : branch; }

 private:
  const Layer* norm_;
};

MethodChoice method_of(const std::string& method, const Layer* norm) {
  if (method == "rezero") return "rezero";
  const bool adds = method == "residual";
  return Method{.name = method, .norm = Norm::none, .growth = Growth::unstated, .build = [=](const GateContext& c) {
                  return adds ? gates_from<ScaleGate>(c) : gates_from<NoSkip>(c, norm);
                }};
}

StackOptions stack_of(const DeepMlpOptions& o, const Layer* norm) {
  const Init init = Init::xavier_normal(o.method == "residual" ? 0.5 : std::sqrt(2.0));
  return {.dim = o.width,
          .depth = o.depth,
          .method = method_of(o.method, norm),
          .junctions = {branch<Dense>("linear", init)},
          .blocks = "hidden"};
}

}  // namespace

const std::vector<std::string>& deep_mlp_methods() {
  static const std::vector<std::string> names{"vanilla", "residual", "layer_norm", "rezero"};
  return names;
}

DeepMlp::DeepMlp(const DeepMlpOptions& o)
    : DeepMlp{checked(o),
              make<Linear>({.in = o.inputs,
                            .out = o.width,
                            .init = he_normal(o.inputs, o.width),
                            .bias_init = Init::uniform(default_bound(o.inputs))}),
              make<Linear>({.in = o.width,
                            .out = o.classes,
                            .init = Init::fan_in_uniform(),
                            .bias_init = Init::uniform(default_bound(o.width))})} {}

DeepMlp::DeepMlp(const DeepMlpOptions& o, std::unique_ptr<Linear> first, std::unique_ptr<Linear> last)
    : Layer("DeepMlp"),
      options_(o),
      first_(this, "first", std::move(first)),
      norm_(this, "norm", o.method == "layer_norm" ? make_layer_norm(o.width, 1e-5) : nullptr),
      stack_(this, "", stack_of(o, norm_.get())),
      last_(this, "last", std::move(last)) {
  initialize(*this, o.seed);
}

Tensor DeepMlp::first(const Tensor& x) const {
  check(x.shape().rank() >= 1 && x.numel() == extent_product("deep_mlp", {x.dim(0), options_.inputs}),
        "[deep_mlp] expected samples [B, ..] of {} elements, got {}", options_.inputs, x.shape());
  return relu((*first_)(reshape(x, {x.dim(0), options_.inputs})));
}

Tensor DeepMlp::forward(const Tensor& x) const { return (*last_)(hidden(first(x))); }

}  // namespace plumb::nn
