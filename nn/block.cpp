#include "nn/block.h"

#include <algorithm>
#include <string_view>

#include "core/scoped_value.h"

namespace plumb::nn {
namespace {

// Throws Error if neither the gate nor the branch can ever get a gradient. If the gate is 0 and the value f of the
// branch is 0, the gradient of the gate is <dy, f> = 0 and the gradient of the branch is gate * dy = 0 in every step.
// The gate is tested with a stream of zeros, in which a small term is not lost to rounding, and with a random stream,
// for gates that multiply the stream. A gate that cannot compute yet, because it contains layers with random weights,
// is not tested.
void refuse_dead_junction(const Method& method, const Gate& gate, Branch& branch, std::int64_t dim) {
  if (!branch.last().weight_init().is_zero()) return;
  const NoGrad no_grad;
  const Tensor f = random_normal({1, 1, dim}, 0, "branch");
  const auto passes = [&](const Tensor& x) {
    const Tensor stream = method.open ? method.open(x).x : x;
    return gate.added(stream, f).values() != gate.added(stream, zeros_like(f)).values();
  };
  const auto alive = [&] {
    try {
      return passes(zeros({1, 1, dim})) || passes(random_normal({1, 1, dim}, 0, "stream"));
    } catch (const Error&) {
      return true;  // an error that persists is thrown in the first forward pass
    }
  };
  check(alive(),
        "[block] expected method \"{}\" to start the gate or the last layer of the branch ({}) at other values than 0, "
        "got "
        "zero for both: neither would ever get a gradient. Start the gate at another value, or do not set the "
        "last layer to 0",
        method.name, *branch.last().path());
}

GateContext context_of(const BlockOptions& o) {
  return {.dim = o.dim,
          .heads = o.heads,
          .hidden = o.hidden,
          .block = o.block,
          .blocks = o.blocks,
          .norm_eps = o.norm_eps,
          .constants = o.gate->values()};
}

}  // namespace

Block::Block(const BlockOptions& o)
    : Layer("Block"),
      index_(o.block),
      method_(o.gate),
      gates_(o.gate->build(context_of(o))),
      norm_(gates_.norm.value_or(o.gate->norm)),
      mlp_({.dim = o.dim, .hidden = o.hidden, .init = weight_init(recipe_of(*o.gate, o.recipe).base, o.dim)}),
      drop1_(o.drop_path, 0, o.drop_path_form),
      drop2_(o.drop_path, 1, o.drop_path_form) {
  check(gates_.attn && gates_.mlp, "[block] expected method \"{}\" to build a gate for each branch, got null",
        method_->name);
  for (const auto& [name, module] : gates_.modules)
    check(module != nullptr, "[block] expected method \"{}\" to build modules, got null for \"{}\"", method_->name,
          name);
  for (const Gate* gate : {gates_.attn, gates_.mlp})
    check(std::ranges::any_of(gates_.modules, [&](const auto& m) { return m.second.get() == gate; }),
          "[block] expected method \"{}\" to list its gates in BlockGates::modules, got a gate that is not there; "
          "build gates with add()",
          method_->name);
  AttentionOptions attention = o.drop;
  attention.dim = o.dim;
  attention.heads = o.heads;
  attention.init = weight_init(recipe_of(*o.gate, o.recipe).base, o.dim);
  attn_ = o.attention(attention);
  attn_->first().weight_init() =
      weight_init(recipe_of(*o.gate, o.recipe).base, o.dim, 3);  // q, k and v count as three matrices
  if (norm_ != Norm::none) {
    check(static_cast<bool>(method_->norm_layer), "[block] expected method \"{}\" to have a norm_layer, got none",
          method_->name);
    norm1_ = method_->norm_layer(o.dim, o.norm_eps);
    norm2_ = method_->norm_layer(o.dim, o.norm_eps);
    check(norm1_ && norm2_, "[block] expected norm_layer of method \"{}\" to make a layer, got null", method_->name);
    child("norm1", *norm1_);
    child("norm2", *norm2_);
  }
  child("attn", *attn_);
  child("mlp", mlp_);
  child("drop_path1", drop1_);
  child("drop_path2", drop2_);
  for (auto& [name, module] : gates_.modules) child(name, *module);
  gates_.attn->init_branch(*attn_);
  gates_.mlp->init_branch(mlp_);
  refuse_dead_junction(*method_, *gates_.attn, *attn_, o.dim);
  refuse_dead_junction(*method_, *gates_.mlp, mlp_, o.dim);
  const double scalar_rate = recipe_of(*method_, o.recipe).scalar_rate;
  each_parameter([&](const std::string&, Parameter& p) {
    if (p.role == Role::gate || p.role == Role::shift) p.lr_factor *= scalar_rate;
  });
  if (method_->adjust)
    each_parameter([&](const std::string& name, Parameter& p) { method_->adjust(context_of(o), name, p); });
}

void Block::advance(Stream& stream) const {
  const ScopedValue current(stream_, &stream);
  stream.x = (*this)(stream.x);
}

Tensor Block::forward(const Tensor& x) const {
  Stream alone;
  if (!stream_) alone = method_->open ? method_->open(x) : Stream{x};
  Stream& s = stream_ ? *stream_ : alone;
  if (stream_) s.x = x;  // a hook may have replaced x
  pass(s, *attn_, *gates_.attn, norm1_.get(), drop1_);
  pass(s, mlp_, *gates_.mlp, norm2_.get(), drop2_);
  return !stream_ && method_->close ? method_->close(s, nullptr) : s.x;
}

void Block::pass(Stream& s, const Branch& branch, const Gate& gate, const Layer* norm, const DropPath& drop) const {
  const Tensor x = s.x, u = gate.read(s);
  const std::unique_ptr<BranchHooks> hooks = gate.inside(s);
  const Layer* const before = norm_ == Norm::pre ? norm : nullptr;
  const Layer* const after = norm_ == Norm::post ? norm : nullptr;
  // Observers are called once for each forward pass, and not again when checkpoint() repeats the pass.
  const bool watched = !observers_->empty() && std::string_view(current_phase()) == "forward" && !calibrating();
  const std::optional<Tensor> scale = calibrating() ? std::nullopt : gate.plain_scale();
  Tensor f, before_norm;
  Handle seen;
  if (watched && after)
    seen = after->on_input([&](const Layer&, const Tensor& y) {
      before_norm = y.detach();
      return Tensor();
    });
  if (scale) {
    const ResidualAdd add{x, *scale, drop.row_scale(x), gate.path()};
    const Tensor y = branch(u, {.hooks = hooks.get(), .norm = before, .add = &add, .value = watched ? &f : nullptr});
    const PathScope scope(gate.path());
    s.x = after ? (*after)(y) : y;
  } else {
    f = branch(u, {.hooks = hooks.get(), .norm = before});
    const PathScope scope(gate.path());
    if (Calibration* calibration = calibrating()) gate.calibrate(x, f, *calibration);
    gate.join(s, f, drop.row_scale(f), after);
  }
  check_joined(x, s.x);
  if (!before_norm.defined()) before_norm = s.x;
  if (watched)
    for (const auto& [id, observer] : std::map(*observers_))
      observer({index_, branch, gate, norm_, x, before_norm, f.detach(), s.x});
}

Handle Block::observe(Observer observer) {
  check(static_cast<bool>(observer), "[observe] expected a function to call, got an empty one");
  const int id = observers_->empty() ? 0 : observers_->rbegin()->first + 1;
  (*observers_)[id] = std::move(observer);
  return Handle([weak = std::weak_ptr(observers_), id] {
    if (const auto alive = weak.lock()) alive->erase(id);
  });
}

}  // namespace plumb::nn
