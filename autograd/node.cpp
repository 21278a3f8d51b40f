// Nodes of the graph: how they are made, hooked and freed.
#include "autograd/node.h"

#include <atomic>

#include "autograd/backward.h"
#include "autograd/checkpoint.h"
#include "autograd/debug.h"
#include "autograd/enable_grad.h"

namespace plumb {
namespace {

std::atomic<std::int64_t> live_count{0};
std::atomic<std::uint64_t> next_number{0};

bool& enabled() {
  thread_local bool e = true;
  return e;
}

// The contents of a destroyed node. Freeing these contents may destroy further nodes. The destructors of further nodes
// pass their contents to the outermost destructor of the thread, so that a chain of any length is freed without
// recursion.
struct Remains {
  std::vector<Node::Input> inputs;
  Backward backward, differentiable_backward;
};
thread_local std::vector<Remains>* left_to_outermost = nullptr;  // null: no destructor is running

}  // namespace

Node::Node(const char* op_name, const Array& y)
    : op(op_name),
      sequence(next_number++),
      path(current_path()),
      shape(y.shape()),
      dtype(y.dtype()),
      device(y.device()) {
  ++live_count;
}

Node::~Node() {
  --live_count;
  if (inputs.empty() && !backward) return;
  Remains mine{std::move(inputs), std::move(backward), std::move(differentiable_backward)};
  if (left_to_outermost) {
    left_to_outermost->push_back(std::move(mine));
    return;
  }
  std::vector<Remains> left;
  left.push_back(std::move(mine));
  const ScopedValue scope(left_to_outermost, &left);
  while (!left.empty()) {
    const Remains last = std::move(left.back());
    left.pop_back();
  }
}

std::int64_t live_nodes() { return live_count; }

NoGrad::NoGrad() : value_(enabled(), false) {}
EnableGrad::EnableGrad() : value_(enabled(), true) {}
bool grad_enabled() { return enabled(); }

namespace detail {

bool recording(const Tensors& inputs) {
  note_inputs(inputs);
  if (!enabled()) return false;
  for (const Tensor& t : inputs)
    if (t.requires_grad()) return true;
  return false;
}

std::uint64_t next_sequence() { return next_number; }

std::shared_ptr<Node> make_node(const char* op, const Array& y, const Tensors& inputs) {
  if (!y.defined() || !is_real(y.dtype())) [[unlikely]]
    fail(fmt::format("[{}] expected a floating result to record, got {}", op, describe(Tensor(y))));
  auto node = std::make_shared<Node>(op, y);
  node->inputs.reserve(inputs.size());
  for (const Tensor& t : inputs) {
    if (const Node* const node_of_t = t.node().get();
        node_of_t && (t.dtype() != node_of_t->dtype || !(t.shape() == node_of_t->shape))) [[unlikely]]
      fail(fmt::format("[{}] expected a tensor with the node that was made for it, got {} with the node of {} {}", op,
                       describe(t), enum_name(node_of_t->dtype), node_of_t->shape));
    node->inputs.push_back(t.defined()
                               ? Node::Input{t.requires_grad() ? t.node() : nullptr, t.shape(), t.dtype(), t.device()}
                               : Node::Input{nullptr, Shape{}, y.dtype(), y.device()});
  }
  return node;
}

void keep_output(Node& node, const Array& y) {
  node.output = y;
  node.output_version = y.version();
}

Tensor alias(const Tensor& x) {
  return record("alias", x.array(), {x}, [](const Tensor& dy) { return Tensors{dy}; });
}

}  // namespace detail

Backward through(std::function<Tensor(const Tensors&)> composed, const Tensors& inputs) {
  std::vector<Saved> saved(inputs.begin(), inputs.end());
  return [composed = std::move(composed), saved = std::move(saved)](const Tensor& dy, const Tensor&) {
    // Each input gets a new node, so that a tensor that is passed twice has two gradients.
    Tensors aliases;
    Tensors wanted;
    for (const Tensor& x : saved) {
      aliases.push_back(x.requires_grad() ? detail::alias(x) : x);
      if (x.requires_grad()) wanted.push_back(aliases.back());
    }
    const Tensor y = composed(aliases);
    check(y.defined() && y.shape() == dy.shape() && y.dtype() == dy.dtype() && y.device() == dy.device(),
          "[through] expected a composed definition whose result is {}, like the result of the op, got {}",
          describe(dy), describe(y));
    const Tensors gradients = detail::partial_gradients(y, dy, wanted, /*create_graph=*/true);
    Tensors result;
    std::size_t next = 0;
    for (const Tensor& x : aliases) result.push_back(x.requires_grad() ? gradients[next++] : Tensor());
    return result;
  };
}

bool Tensor::requires_grad() const { return node_ && !node_->frozen; }

std::string describe(const Tensor& x) {
  return x.defined() ? fmt::format("{} {}{}", enum_name(x.dtype()), x.shape(),
                                   x.device() == Device::cpu ? "" : fmt::format(" on {}", enum_name(x.device())))
                     : "an undefined tensor";
}

Handle Tensor::on_gradient(std::function<Tensor(const Tensor&)> hook) const {
  if (!requires_grad())
    fail(fmt::format("[on_gradient] expected a tensor that requires a gradient, got {} {}",
                     node_ ? "a frozen parameter" : "a constant", describe(*this)));
  check(static_cast<bool>(hook), "[on_gradient] expected a function to call, got an empty one");
  const int id = node_->hooks.empty() ? 0 : node_->hooks.rbegin()->first + 1;
  node_->hooks[id] = std::move(hook);
  return Handle([node = std::weak_ptr<Node>(node_), id] {
    if (const auto alive = node.lock()) alive->hooks.erase(id);
  });
}

Tensor variable(const Array& value) {
  check(value.defined(), "[variable] expected a value, got an undefined one");
  check(is_float(value.dtype()), "[variable] expected f32 or f64, got {}", enum_name(value.dtype()));
  return Tensor(value, std::make_shared<Node>("variable", value));
}

}  // namespace plumb
