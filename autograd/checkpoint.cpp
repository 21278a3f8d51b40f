// Activation checkpointing as an op that runs its function again in the backward pass.
#include "autograd/checkpoint.h"

#include <algorithm>

#include "autograd/backward.h"
#include "autograd/enable_grad.h"
#include "autograd/node.h"
#include "core/precision.h"

namespace plumb {
namespace {

// The tensors of the outer graph that the forward pass of a checkpoint uses. `begin` is the sequence number of the
// first node that is made in the pass: value_and_grad() records nodes there too.
struct Captured {
  Tensors tensors;
  std::uint64_t begin = detail::next_sequence();
};
// The tensors of the innermost checkpoint.
thread_local Captured* noted = nullptr;

// The thread's state in the forward pass, which the recomputation restores.
struct ForwardState {
  Path path = current_path();
  RandomState random = random_state();
  Precision precision = plumb::precision();
};

}  // namespace

namespace detail {

void note_inputs(const Tensors& inputs) {
  if (!noted) return;
  for (const Tensor& t : inputs)
    if (t.requires_grad() && t.node()->sequence < noted->begin &&
        std::ranges::find(noted->tensors, t.node(), &Tensor::node) == noted->tensors.end())
      noted->tensors.push_back(t);
}

}  // namespace detail

Tensor checkpoint(std::function<Tensor(const Tensors&)> f, const Tensors& inputs) {
  check(static_cast<bool>(f), "[checkpoint] expected a function to run, got an empty one");
  if (!grad_enabled()) return f(inputs);
  Captured captured;
  Tensors constants;
  for (const Tensor& x : inputs) constants.push_back(x.detach());
  Array y;
  {
    const NoGrad no_grad;
    const ScopedValue scope(noted, &captured);
    const Tensor result = f(constants);
    check(result.defined(), "[checkpoint] expected a function that returns a tensor, got an undefined one");
    detail::note_inputs({result});  // f may return a tensor that it captured
    y = result.array();
  }
  Tensors all = inputs;
  all.insert(all.end(), captured.tensors.begin(), captured.tensors.end());
  std::vector<Saved> saved(all.begin(), all.end());

  const auto again = [f = std::move(f), saved = std::move(saved), count = inputs.size(), state = ForwardState()](
                         const Tensor& dy, bool create_graph) {
    // The tensors of `inputs` get new nodes. f uses captured tensors directly, and the walk through the graph stops at
    // these tensors.
    Tensors arguments, targets;
    Tensor y_again;
    {
      const EnableGrad grad_mode;
      const PathScope path(state.path);
      const RepeatScope repeat(Repeat::checkpoint);
      const RandomScope random(state.random);
      const PrecisionScope precision(state.precision);
      for (std::size_t i = 0; i < count; ++i) {
        const Tensor& x = saved[i];
        if (!x.requires_grad())
          arguments.push_back(x);
        else if (create_graph)
          arguments.push_back(detail::alias(x));
        else
          arguments.push_back(variable(x.array()));
      }
      y_again = f(arguments);
    }
    check(y_again.defined() && y_again.shape() == dy.shape() && y_again.dtype() == dy.dtype() &&
              y_again.device() == dy.device(),
          "[checkpoint] expected a function that computes {} again, as in the forward pass, got {}", describe(dy),
          describe(y_again));
    for (const Tensor& x : arguments)
      if (x.requires_grad()) targets.push_back(x);
    for (std::size_t i = count; i < saved.size(); ++i) targets.push_back(saved[i]);
    const Tensors gradients = detail::partial_gradients(y_again, dy, targets, create_graph);
    Tensors result;
    std::size_t next = 0;
    for (const Tensor& x : arguments) result.push_back(x.requires_grad() ? gradients[next++] : Tensor());
    result.insert(result.end(), gradients.begin() + static_cast<std::ptrdiff_t>(next), gradients.end());
    return result;
  };
  return record_fused(
      "checkpoint", y, all, [again](const Tensor& dy) { return again(dy, false); },
      [again](const Tensor& dy) { return again(dy, true); });
}

}  // namespace plumb
