#include "nn/layers/branch.h"

#include "core/precision.h"
#include "nn/layers/branch_context.h"
#include "nn/layers/norm.h"

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

BranchShape Branch::shape() {
  BranchShape shape = shape_;
  if (shape.hidden == 0) shape.hidden = last().own("weight").value.dim(1);
  if (shape.weight_layers == 0) shape.weight_layers = static_cast<int>(weight_layers().size());
  return shape;
}

std::vector<WeightLayer*> Branch::weight_layers() {
  std::vector<WeightLayer*> layers;
  each_module([&](Module& module) {
    if (auto* const layer = dynamic_cast<WeightLayer*>(&module)) layers.push_back(layer);
  });
  check(!layers.empty(),
        "[branch] expected a layer with a weight (Linear, Conv2d) among the children of {}, got none: register the "
        "layers of the branch",
        *path());
  return layers;
}

void Branch::scale_value_path(double factor) {
  check(shape_.heads == 0,
        "[branch] expected scale_value_path() of {}, a branch with heads, to be overridden, got the default, which "
        "would also scale the weights of queries and keys",
        *path());
  for (WeightLayer* layer : weight_layers()) layer->scale_init(factor);
}

Tensor Branch::run(const Tensor& x, const BranchContext& context) const {
  BranchCall call(x, context);
  Tensor y = forward(call);
  check(y.defined() && call.left_.defined() && y.node() == call.left_.node() &&
            y.array().shares_buffer_with(call.left_.array()),
        "[branch] expected forward() to return the tensor of call.leave(), which adds the residual sum, got {}: end "
        "forward() with return call.leave(..)",
        !y.defined()           ? "an undefined tensor"
        : call.left_.defined() ? "another tensor"
                               : "a tensor without a call of leave()");
  return y;
}

Tensor Branch::forward(const Tensor& x) const { return run(x, BranchContext()); }

Tensor Branch::operator()(const Tensor& x, const StackInputs& inputs) const {
  return call_branch(*this, x, {.inputs = &inputs});
}

Tensor call_branch(const Branch& branch, const Tensor& x, const BranchContext& context) {
  if (!branch.hooked())
    return branch.compute_with_hooks(x, [&](const Tensor& input) { return branch.run(input, context); });
  const BranchContext inside{.hooks = context.hooks, .inputs = context.inputs};
  const Tensor f = branch.compute_with_hooks(after_norm(context.norm, x),
                                             [&](const Tensor& input) { return branch.run(input, inside); });
  return context.sum ? sum_of(context, f) : f;
}

Tensor BranchCall::normed() const {
  const Tensor u = after_norm(context_.norm, x_);
  return context_.hooks ? context_.hooks->input(u) : u;
}

Tensor BranchCall::hidden(const Tensor& h) const { return context_.hooks ? context_.hooks->hidden(h) : h; }

Tensor BranchCall::enter(const Layer& first, std::optional<Gelu> form) const {
  return enter_fused(first, {.gelu = form, .result = form ? ResultDType::product : ResultDType::weight});
}

Tensor BranchCall::enter_fused(const Layer& first, LinearFusion with) const {
  const auto* const layer = context_.hooks ? nullptr : dynamic_cast<const Linear*>(&first);
  if (!layer || layer->hooked()) {
    const Tensor u = enter([&](const Tensor& x) { return first(x); });
    const Tensor y = with.gelu ? gelu(u, *with.gelu) : u;
    const bool narrow =
        layer && with.result == ResultDType::product && y.dtype() == DType::f32 && precision() == Precision::bf16;
    return narrow ? cast(y, DType::bf16) : y;
  }
  const auto* const norm = dynamic_cast<const LayerNorm*>(context_.norm);
  const bool fused = norm && !norm->hooked();
  if (fused) with.norm = {norm->weight(), norm->bias(), norm->eps()};
  const Tensor x = fused ? x_ : after_norm(context_.norm, x_);
  const PathScope scope(layer->path());
  return linear(x, layer->weight(), layer->bias(), with);
}

Tensor BranchCall::enter(const std::function<Tensor(const Tensor&)>& first) const {
  const Tensor u = first(normed());
  return context_.hooks ? context_.hooks->projected(u) : u;
}

Tensor BranchCall::leave(const Layer& last, const Tensor& h, const Layer* after) {
  const auto* const layer = after || !context_.sum || last.hooked() ? nullptr : dynamic_cast<const Linear*>(&last);
  const Tensor input = hidden(h);
  if (!layer) {
    const Tensor f = last(input);
    return leave(after ? (*after)(f) : f);
  }
  if (context_.value) {
    const NoGrad no_grad;
    *context_.value = last(input.detach());
  }
  const PathScope scope(layer->path());
  return left_ = linear(input, layer->weight(), layer->bias(), {.sum = context_.sum});
}

Tensor BranchCall::leave(const Tensor& f) { return left_ = context_.sum ? sum_of(context_, f) : f; }

const StackInputs& BranchCall::inputs() const {
  static const StackInputs none;
  return context_.inputs ? *context_.inputs : none;
}

const MemoryTokens& BranchCall::memory() const {
  check(inputs().memory.x.defined(),
        "[branch] expected a second input (StackInputs::memory) for this branch, got a call without one");
  return inputs().memory;
}

}  // namespace plumb::nn
