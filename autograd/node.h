// The graph behind tensors, and `record`, with which an op enters it. For writers of ops.
#pragma once

#include <map>
#include <type_traits>

#include "autograd/tensor.h"
#include "core/backend.h"
#include "core/scope.h"

namespace plumb {

// A tensor kept for the backward pass: reading it throws if its buffer was changed in place since.
class Saved {
 public:
  explicit Saved(const Tensor& tensor) : tensor_(tensor), version_(tensor.defined() ? tensor.array().version() : 0) {}
  const Tensor& get() const {
    check(!tensor_.defined() || tensor_.array().version() == version_,
          "[backward] expected a saved tensor of shape {} as it was in the forward pass, got one changed in place "
          "since (an optimizer step "
          "between forward and backward?)",
          tensor_.shape());
    return tensor_;
  }
  operator const Tensor&() const { return get(); }
  const Array& array() const { return get().array(); }
  bool requires_grad() const { return tensor_.requires_grad(); }

 private:
  Tensor tensor_;
  std::uint32_t version_;
};

// The gradient of each input given dy, that of the output y; an undefined one is zero. Gradients have their inputs'
// dtype and device, and their shape or one that it broadcasts to, such as the output's: the engine sums them to the
// input's. It throws for others.
using Backward = std::function<Tensors(const Tensor& dy, const Tensor& y)>;

// One recorded op, or a variable (no backward).
struct Node {
  struct Input {
    std::shared_ptr<Node> node;  // null: a constant
    Shape shape;
    DType dtype;
    Device device;
  };

  Node(const char* op_name, const Array& output);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const char* op;
  std::uint64_t sequence;  // grows with every node: an order in which inputs come before outputs
  Path path;               // module that recorded it
  Shape shape;
  DType dtype;
  Device device;
  std::vector<Input> inputs;
  Backward backward;                 // computes gradients; may use fused kernels
  Backward differentiable_backward;  // the same in recorded ops; null: `backward` is
  Array output;                      // kept only for a backward that reads y
  std::uint32_t output_version = 0;  // of its buffer when it was recorded
  bool consumed = false;             // by backward(Tensor&&)
  bool frozen = false;               // a variable that is a constant for now: Parameter::frozen (nn/module.h)
  std::string name;                  // of a variable: the parameter's
  std::map<int, std::function<Tensor(const Tensor&)>> hooks;
};

// Nodes alive in the process: 0 once every tensor is gone.
std::int64_t live_nodes();

namespace detail {
bool recording(const Tensors& inputs);  // whether an op on these enters the graph; also notes inputs for checkpoint()
std::shared_ptr<Node> make_node(const char* op, const Array& y, const Tensors& inputs);
void keep_output(Node& node, const Array& y);  // for a backward that reads y, which throws if it was changed in place
void check_finite(const char* op, const Array& y);  // in anomaly mode, throws for a non-finite element
// For an op that refuses wrong ones: the elements of `numbers` (i64) on the host; undefined where they lie on a device,
// whose kernels make NaN of wrong ones, unless in anomaly mode, which is to name what was wrong.
Array numbers_to_check(const Array& numbers);
// For a fused op's plain backward function: the sum of the gradients that input i has got from others so far, if nobody
// else holds it; else undefined. Whoever takes it must return it, updated in place, as (part of) the gradient of input
// i: one pass less.
Array take_gradient(std::size_t i);

// Backward functions may take (dy) or, if they read the output, (dy, y). Only then is the output kept, and only its
// data.
template <class F>
inline constexpr bool reads_output = std::is_invocable_v<F, const Tensor&, const Tensor&>;
template <class F>
Backward adapt(F f) {
  if constexpr (reads_output<F>)
    return Backward(std::move(f));
  else
    return [f = std::move(f)](const Tensor& dy, const Tensor&) { return f(dy); };
}
}  // namespace detail

// Enters y = op(inputs) into the graph if one of the inputs requires a gradient and recording is on. The backward
// function is written in tensor ops, so it can be differentiated again. It captures inputs as Saved and never the
// output.
template <class F>
Tensor record(const char* op, const Array& y, const Tensors& inputs, F backward) {
  detail::check_finite(op, y);
  if (!detail::recording(inputs)) return Tensor(y);
  auto node = detail::make_node(op, y, inputs);
  node->backward = detail::adapt(std::move(backward));
  if constexpr (detail::reads_output<F>) detail::keep_output(*node, y);
  return Tensor(y, std::move(node));
}

// The same for a fused op: `fast` runs in a plain backward pass and may call kernels; `differentiable` when a graph of
// the gradient is asked for.
template <class Fast, class Differentiable>
Tensor record_fused(const char* op, const Array& y, const Tensors& inputs, Fast fast, Differentiable differentiable) {
  Tensor result = record(op, y, inputs, std::move(fast));
  if (result.node()) {
    result.node()->differentiable_backward = detail::adapt(std::move(differentiable));
    if constexpr (detail::reads_output<Differentiable>) detail::keep_output(*result.node(), y);
  }
  return result;
}

// The differentiable backward of a fused op from its composed definition: y = composed(inputs) is built again from
// primitives and differentiated. Keeps the inputs.
Backward through(std::function<Tensor(const Tensors&)> composed, const Tensors& inputs);

}  // namespace plumb
