#include "nn/layers/branch.h"

namespace plumb::nn {
namespace {

Tensor after_norm(const Layer* norm, const Tensor& x) { return norm ? (*norm)(x) : x; }

// The residual sum of `context`, outside the branch.
Tensor sum_of(const BranchContext& context, const Tensor& f) {
  if (context.value) *context.value = f.detach();
  const PathScope scope(context.gate);
  return gated_residual(context.sum->skip, f, context.sum->gate, context.sum->row_scale);
}

}  // namespace

Tensor Branch::operator()(const Tensor& x, const BranchContext& context) const {
  if (!hooked())
    return compute_with_hooks(x, [&](const Tensor& input) { return forward(BranchCall(input, context)).value(); });
  const BranchContext inside{.hooks = context.hooks, .inputs = context.inputs};
  const Tensor f = compute_with_hooks(after_norm(context.norm, x),
                                      [&](const Tensor& input) { return forward(BranchCall(input, inside)).value(); });
  return context.sum ? sum_of(context, f) : f;
}

Tensor Branch::forward(const Tensor& x) const { return forward(BranchCall(x, BranchContext())).value(); }

Tensor BranchCall::normed() const {
  const Tensor u = after_norm(context_.norm, x_);
  return context_.hooks ? context_.hooks->input(u) : u;
}

Tensor BranchCall::hidden(const Tensor& h) const { return context_.hooks ? context_.hooks->hidden(h) : h; }

BranchResult BranchCall::leave(const Tensor& f) const { return BranchResult(context_.sum ? sum_of(context_, f) : f); }

Tensor BranchCall::enter(const Linear& first, const First& with) const {
  if (!context_.hooks) return first(x_, {.norm = context_.norm, .gelu = with.gelu, .result = with.result});
  const Tensor u = context_.hooks->projected(first(normed()));
  return with.gelu ? gelu(u, *with.gelu) : u;
}

Tensor BranchCall::enter(const Layer& first) const {
  return enter([&](const Tensor& u) { return first(u); });
}

Tensor BranchCall::enter(const std::function<Tensor(const Tensor&)>& first) const {
  const Tensor u = first(normed());
  return context_.hooks ? context_.hooks->projected(u) : u;
}

BranchResult BranchCall::leave(const Linear& last, const Tensor& h, const Layer* after) const {
  if (after || !context_.sum || last.hooked()) return leave(static_cast<const Layer&>(last), h, after);
  const Tensor input = hidden(h);
  if (context_.value) {
    const NoGrad no_grad;
    *context_.value = last(input.detach());
  }
  return BranchResult(last(input, {.sum = context_.sum}));
}

BranchResult BranchCall::leave(const Layer& last, const Tensor& h, const Layer* after) const {
  const Tensor f = last(hidden(h));
  return leave(after ? (*after)(f) : f);
}

const StackInputs& BranchCall::inputs() const {
  static const StackInputs none;
  return context_.inputs ? *context_.inputs : none;
}

const MemoryTokens& BranchCall::memory() const {
  check(inputs().memory.has_value(),
        "[branch] expected a second input (StackInputs::memory) for this branch, got a call without one");
  return *inputs().memory;
}

}  // namespace plumb::nn
