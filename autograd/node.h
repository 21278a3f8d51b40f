// The nodes of the graph, and record(), which adds an op to it. This header is for authors of ops.
#pragma once

#include <map>
#include <type_traits>

#include "autograd/tensor.h"
#include "core/scope.h"

namespace plumb {

// A tensor that is kept for the backward pass. If the buffer of the tensor was changed in place, reading the tensor
// throws Error.
class Saved {
 public:
  explicit Saved(const Tensor& tensor) : tensor_(tensor), version_(tensor.defined() ? tensor.array().version() : 0) {}
  // The tensor, or its array. Throws Error if the buffer was changed in place.
  const Tensor& get() const {
    check(!tensor_.defined() || tensor_.array().version() == version_,
          "[backward] expected a saved tensor of shape {} as it was in the forward pass, got one that was changed in "
          "place "
          "(by an optimizer step between forward and backward?)",
          tensor_.shape());
    return tensor_;
  }
  operator const Tensor&() const { return get(); }
  const Array& array() const { return get().array(); }
  // Whether the tensor requires a gradient; does not check the buffer.
  bool requires_grad() const { return tensor_.requires_grad(); }

 private:
  Tensor tensor_;
  std::uint32_t version_;
};

// A backward function: returns the gradient of each input, given the gradient dy of the output y. An undefined gradient
// counts as zero. Each gradient has the dtype and device of its input, and the shape of the input or a shape that the
// input broadcasts to, such as the shape of y. The engine sums each gradient to the shape of the input. The engine
// throws Error for any other gradient.
using Backward = std::function<Tensors(const Tensor& dy, const Tensor& y)>;

// An op that was recorded in the graph, or a variable. A variable has no backward function.
struct Node {
  // The properties of an input of the op that the backward pass needs.
  struct Input {
    std::shared_ptr<Node> node;  // null for a constant
    Shape shape;
    DType dtype;
    Device device;
  };

  Node(const char* op_name, const Array& output);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const char* op;          // name of the op, for messages
  std::uint64_t sequence;  // increases with every node, so that inputs have smaller numbers than outputs
  Path path;               // the module that recorded the op
  Shape shape;
  DType dtype;
  Device device;
  std::vector<Input> inputs;
  Backward backward;                 // computes gradients; may use fused kernels
  Backward differentiable_backward;  // computes gradients in recorded ops; null if `backward` consists of recorded ops
  Array output;                      // kept only if a backward function reads y
  std::uint32_t output_version = 0;  // version of the output's buffer when the op was recorded
  bool consumed = false;             // whether backward(Tensor&&) has freed the backward function
  bool frozen = false;               // whether a variable counts as a constant now: Parameter::frozen (nn/module.h)
  std::string name;                  // name of the parameter, if the node is a parameter
  std::map<int, std::function<Tensor(const Tensor&)>> hooks;
};

// The number of nodes in the process; 0 when no tensor is left.
std::int64_t live_nodes();

namespace detail {
// Whether an op on these inputs is recorded in the graph. Notes the inputs for checkpoint().
bool recording(const Tensors& inputs);
// The sequence number of the next node.
std::uint64_t next_sequence();
// Makes the node of y = op(inputs), without backward functions. Throws Error if y is not floating.
std::shared_ptr<Node> make_node(const char* op, const Array& y, const Tensors& inputs);
// Keeps y in the node for a backward function that reads it. The backward pass throws Error if y was changed in place.
void keep_output(Node& node, const Array& y);
// In anomaly mode, throws Error if an element of y is not finite.
void check_finite(const char* op, const Array& y);
// Returns the elements of `numbers` (i64) on the host, for an op that checks them. Outside anomaly mode, returns an
// undefined array if the numbers are on a GPU: the GPU's kernels give NaN for an invalid number, so that no check has
// to wait.
Array numbers_to_check(const Array& numbers);
// Lets the backward function of a fused op save a pass over memory. Returns the sum of the gradients that input i has
// received from other ops so far, if no other tensor uses its buffer; else an undefined array. The caller must add its
// gradient to this array in place and return it as the gradient of input i. The result is always undefined while a
// graph of the gradient is recorded.
Array take_gradient(std::size_t i);

// A backward function takes (dy), or (dy, y) if it reads the output. The node keeps the data of the output only in the
// second case.
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

// Records y = op(inputs) in the graph if an input requires a gradient and recording is on, and returns y as a tensor.
// The backward function must be written in tensor ops, so that it can be differentiated again. The backward function
// must capture inputs as Saved and must not capture the output.
template <class F>
Tensor record(const char* op, const Array& y, const Tensors& inputs, F backward) {
  detail::check_finite(op, y);
  if (!detail::recording(inputs)) return Tensor(y);
  auto node = detail::make_node(op, y, inputs);
  node->backward = detail::adapt(std::move(backward));
  if constexpr (detail::reads_output<F>) detail::keep_output(*node, y);
  return Tensor(y, std::move(node));
}

// Records a fused op. `fast` runs in a backward pass without create_graph and may call kernels. `differentiable` runs
// if a graph of the gradient is requested.
template <class Fast, class Differentiable>
Tensor record_fused(const char* op, const Array& y, const Tensors& inputs, Fast fast, Differentiable differentiable) {
  Tensor result = record(op, y, inputs, std::move(fast));
  if (result.node()) {
    result.node()->differentiable_backward = detail::adapt(std::move(differentiable));
    if constexpr (detail::reads_output<Differentiable>) detail::keep_output(*result.node(), y);
  }
  return result;
}

namespace detail {
// x with a new node of its own, through which gradients flow to x.
Tensor alias(const Tensor& x);
}  // namespace detail

// Returns the differentiable backward function of a fused op, made from its composed definition. The backward function
// keeps the inputs, computes y = composed(inputs) again from primitives, and differentiates this y.
Backward through(std::function<Tensor(const Tensors&)> composed, const Tensors& inputs);

}  // namespace plumb
