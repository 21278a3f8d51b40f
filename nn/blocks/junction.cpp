#include "nn/blocks/junction.h"

#include "nn/layers/branch_context.h"

namespace plumb::nn {
namespace {

// A norm that keeps its input for the observers of one pass.
class WatchedNorm : public Layer {
 public:
  WatchedNorm(const Layer& norm, Tensor& input) : Layer("WatchedNorm"), norm_(norm), input_(input) {}

 protected:
  Tensor forward(const Tensor& x) const override {
    input_ = x.detach();
    return norm_(x);
  }

 private:
  const Layer& norm_;
  Tensor& input_;
};

}  // namespace

Junction::Junction(Parts parts) : parts_(std::move(parts)), drop_path_(*parts_.drop_path) {}

void Junction::advance(Stream& s, const StackInputs& inputs) const {
  const Gate& gate = *parts_.gate;
  const Layer* const before = parts_.norm == Norm::pre ? parts_.norm_layer.get() : nullptr;
  const Layer* const after = parts_.norm == Norm::post ? parts_.norm_layer.get() : nullptr;
  // Observers are called once for each forward pass, and not again when checkpoint() repeats the pass.
  const bool watched = !observers_.empty() && current_repeat() == Repeat::none && !detail::calibrating();
  const Stream entering = watched ? s : Stream{};
  const Tensor x = s.x;
  Tensor u;
  std::unique_ptr<BranchHooks> hooks;
  std::optional<Tensor> scale;
  {
    const PathScope scope(gate.path());
    u = gate.read(s);
    hooks = gate.inside(s);
    if (!detail::calibrating()) scale = gate.plain_scale();
  }
  Tensor f, before_norm;
  std::optional<WatchedNorm> watched_norm;
  if (watched && after) watched_norm.emplace(*after, before_norm);
  const Layer* const norm = watched_norm ? &*watched_norm : after;
  BranchContext context{.hooks = hooks.get(), .norm = before, .inputs = &inputs};
  if (scale) {
    context.sum = {x, *scale, drop_path_.row_scale(x)};
    context.gate = gate.path();
    context.value = watched ? &f : nullptr;
    const Tensor y = call_branch(*parts_.branch, u, context);
    const PathScope scope(gate.path());
    s.x = norm ? (*norm)(y) : y;
  } else {
    f = call_branch(*parts_.branch, u, context);
    const PathScope scope(gate.path());
    if (std::optional<double>* const carried = detail::calibrating()) gate.calibrate(x, f, *carried);
    gate.join(s, f, drop_path_.row_scale(f), norm);
  }
  check_joined(x, s.x);
  if (!watched) return;
  if (!before_norm.defined()) before_norm = s.x;
  // A layer that an observer runs again must not count as a training pass.
  const RepeatScope observing(Repeat::observer);
  observers_.call(
      {parts_.place, parts_.name, *parts_.branch, gate, parts_.norm, entering, before_norm, f.detach(), s.x});
}

Handle Junction::observe(Observer observer) { return observers_.add(std::move(observer)); }

// If the gate is 0 and the value f of the branch is 0, the gradient of the gate is <dy, f> = 0 and the gradient of the
// branch is gate * dy = 0 in every step. The gate is tested with a stream of zeros, in which a small term is not lost
// to rounding, and with a random stream, for gates that multiply the stream. A gate that cannot compute yet, because it
// contains layers with random weights, is not tested.
void Junction::refuse_if_dead(const Method& method) const {
  WeightLayer& last = parts_.branch->last();
  if (!last.weight_init().is_zero()) return;
  const NoGrad no_grad;
  const std::int64_t dim = parts_.place.dim;
  const Shape shape = parts_.place.layout == Layout::images ? Shape{1, dim, 1, 1} : Shape{1, 1, dim};
  const Tensor f = random_normal(shape, 0, "branch");
  const auto passes = [&](const Tensor& x) {
    const Tensor stream = method.open ? method.open(x).x : x;
    return gate().added(stream, f).values() != gate().added(stream, zeros_like(f)).values();
  };
  const auto alive = [&] {
    try {
      return passes(zeros(shape)) || passes(random_normal(shape, 0, "stream"));
    } catch (const Error&) {
      return true;  // an error that persists is thrown in the first forward pass
    }
  };
  check(alive(),
        "[block] expected method \"{}\" to start the gate or the last layer of the branch ({}) at other values than 0, "
        "got zero for both: neither would ever get a gradient. Start the gate at another value, or do not set the last "
        "layer to 0",
        method.name, *last.path());
}

}  // namespace plumb::nn
