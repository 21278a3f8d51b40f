// The walk through the graph that backward() and grad() use.
#include "autograd/backward.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "autograd/checkpoint.h"
#include "autograd/debug.h"
#include "autograd/enable_grad.h"
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"
#include "core/scope.h"

namespace plumb {
namespace {

// The fate of the graph: it is kept, freed during the walk, or kept while the gradient is recorded too.
enum class Graph { keep, consume, record };

using NodeSet = std::unordered_set<const Node*>;

// Returns the nodes on the paths from `root` to `targets`, through which gradients reach the targets. The search does
// not go beyond `stops`, nor to nodes that are older than every target.
NodeSet on_the_way(const std::shared_ptr<Node>& root, const NodeSet& targets, const NodeSet& stops) {
  if (targets.empty()) return {};
  const auto oldest = std::ranges::min_element(targets, {}, &Node::sequence);
  std::vector<const Node*> found{root.get()};
  NodeSet seen{root.get()};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const Node* const node = found[i];
    if (stops.contains(node)) continue;
    for (const Node::Input& input : node->inputs)
      if (input.node && input.node->sequence >= (*oldest)->sequence && seen.insert(input.node.get()).second)
        found.push_back(input.node.get());
  }
  std::ranges::sort(found, {}, &Node::sequence);  // puts inputs before outputs
  NodeSet useful(targets);
  for (const Node* node : found)
    if (!stops.contains(node))
      for (const Node::Input& input : node->inputs)
        if (input.node && useful.contains(input.node.get())) useful.insert(node);
  return useful;
}

// Checks a gradient that a backward function returned, and sums it from its broadcast shape to the shape of the input.
Tensor fitted(const Node& node, std::size_t i, const Tensor& gradient) {
  const Node::Input& input = node.inputs[i];
  check(gradient.dtype() == input.dtype && gradient.device() == input.device,
        "[{}] expected gradient {} of the backward function to be {} on {} like its input, got {} on {}", node.op, i,
        enum_name(input.dtype), enum_name(input.device), enum_name(gradient.dtype()), enum_name(gradient.device()));
  check(broadcasts_to(input.shape, gradient.shape()),
        "[{}] expected gradient {} of the backward function to have the shape {} of its input, or a shape that the "
        "input broadcasts to, got {}",
        node.op, i, input.shape, gradient.shape());
  return gradient.shape() == input.shape ? gradient : sum_to(gradient, input.shape);
}

void accumulate(Tensor& sum, const Tensor& gradient, bool in_place) {
  if (!sum.defined()) {
    sum = gradient;
  } else if (in_place && sum.array().unique()) {
    kernels(sum.array()).binary(Binary::add, sum.array(), gradient.array(), Out(sum.array()));
  } else if (sum.dtype() == DType::bf16) {
    sum = cast(cast(sum, DType::f32) + cast(gradient, DType::f32), DType::bf16);
  } else {
    sum = sum + gradient;
  }
}

// A node and the sum of the gradients that it has received so far.
struct Reached {
  std::shared_ptr<Node> node;
  Tensor gradient;
};
// The reached nodes by sequence number. The gradient of the newest node is complete, because every node that depends on
// the newest node was processed before.
using Pending = std::map<std::uint64_t, Reached>;

// Passes the gradient of a node through its hooks; a defined result of a hook replaces the gradient.
Tensor hooked(const Node& node, Tensor gradient, bool recorded) {
  const auto hooks = node.hooks;  // a copy, because a hook may remove itself
  for (const auto& [id, hook] : hooks) {
    const std::uint32_t version = gradient.array().version();
    const Tensor replaced = hook(gradient);
    check(gradient.array().version() == version,
          "[on_gradient] expected the hook to leave the gradient {} unchanged, which other tensors may share, got it "
          "changed in place: return a new tensor",
          describe(gradient));
    if (!replaced.defined()) continue;
    check(replaced.shape() == gradient.shape() && replaced.dtype() == gradient.dtype() &&
              replaced.device() == gradient.device(),
          "[on_gradient] expected {}, got {}", describe(gradient), describe(replaced));
    gradient = recorded ? replaced : replaced.detach();
  }
  return gradient;
}

// The state of take_gradient() while a backward function runs unrecorded; empty at all other times.
struct Taking {
  const Node* node = nullptr;
  Pending* pending = nullptr;
};
thread_local Taking taking;

// Walks from `root` to `targets`, or to all variables if `targets` is null. Returns the gradients of the targets or
// variables that the walk found, newest first.
std::vector<Reached> propagate(const std::shared_ptr<Node>& root, Tensor dy, const NodeSet* targets,
                               const NodeSet& stops, Graph graph) {
  const PhaseScope phase("backward");
  const NodeSet useful = targets ? on_the_way(root, *targets, stops) : NodeSet();
  const auto wanted = [&](const Node* node) { return !targets || useful.contains(node); };
  Pending pending;
  std::vector<Reached> found;
  if (wanted(root.get())) pending[root->sequence] = {root, std::move(dy)};
  std::optional<NoGrad> no_grad;
  std::optional<EnableGrad> enable_grad;
  if (graph == Graph::record)
    enable_grad.emplace();
  else
    no_grad.emplace();

  while (!pending.empty()) {
    auto [node, gradient] = std::move(pending.extract(std::prev(pending.end())).mapped());
    const PathScope path(node->path);
    // The hooks of a stop do not run here, because the walk of the outer graph runs them.
    if (!node->hooks.empty() && !stops.contains(node.get()))
      gradient = hooked(*node, std::move(gradient), graph == Graph::record);
    const bool is_variable = node->inputs.empty() && !node->backward;
    if (targets ? targets->contains(node.get()) : is_variable) found.push_back({node, gradient});
    if (is_variable || stops.contains(node.get())) continue;
    if (targets &&
        std::ranges::none_of(node->inputs, [&](const Node::Input& i) { return i.node && wanted(i.node.get()); }))
      continue;

    check(!node->consumed,
          "[{}] expected a graph to differentiate, got one that an earlier backward(std::move(loss)) has consumed",
          node->op);
    const Backward& f =
        graph == Graph::record && node->differentiable_backward ? node->differentiable_backward : node->backward;
    check(!node->output.defined() || node->output.version() == node->output_version,
          "[{}] expected its result {} as it was in the forward pass, got one that was changed in place", node->op,
          node->shape);
    const Tensor y = node->output.defined() ? Tensor(node->output, graph == Graph::record ? node : nullptr) : Tensor();
    Tensors gradients;
    {
      const detail::PauseAnomalyMode pause;
      const ScopedValue scope(taking, graph == Graph::record ? Taking{} : Taking{node.get(), &pending});
      gradients = f(gradient, y);
    }
    gradient = Tensor();
    check(gradients.size() == node->inputs.size(),
          "[{}] expected {} gradients from the backward function, one for each input of the op, got {}", node->op,
          node->inputs.size(), gradients.size());
    if (graph == Graph::consume) {
      node->backward = nullptr;
      node->differentiable_backward = nullptr;
      node->output = Array();
      node->consumed = true;
    }
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const std::shared_ptr<Node>& input = node->inputs[i].node;
      if (!input || input->frozen || !gradients[i].defined() || !wanted(input.get())) continue;
      detail::check_finite(node->op, gradients[i].array());
      Tensor piece = fitted(*node, i, gradients[i]);
      gradients[i] = Tensor();
      Reached& reached = pending[input->sequence];
      reached.node = input;
      accumulate(reached.gradient, piece, graph != Graph::record);
    }
  }
  return found;
}

// The likely reason why a result has no graph.
const char* why_constant(const std::shared_ptr<Node>& node) {
  if (node) return "a frozen parameter";
  if (!grad_enabled()) return "a constant: ops are not recorded while a NoGrad lives";
  return "a constant: it was computed from no variable() and no parameter that is not frozen, or within NoGrad";
}

// The gradient of each tensor among those that a walk reached; zero for the others.
Tensors gradients_of(const Tensors& xs, const std::vector<Reached>& reached) {
  Tensors gradients;
  for (const Tensor& x : xs) {
    const auto entry = std::ranges::find(reached, x.node(), &Reached::node);
    gradients.push_back(entry == reached.end() ? zeros_like(x) : entry->gradient);
  }
  return gradients;
}

// Whether the search from `root` finds a variable that is not in `own`, or a node from before `begin`, which always
// leads to a variable.
bool depends_on_others(const Node* root, const NodeSet& own, std::uint64_t begin) {
  std::vector<const Node*> left{root};
  NodeSet seen{root};
  while (!left.empty()) {
    const Node* const node = left.back();
    left.pop_back();
    if (own.contains(node)) continue;
    if (node->inputs.empty() || node->sequence < begin) return true;
    for (const Node::Input& input : node->inputs)
      if (input.node && seen.insert(input.node.get()).second) left.push_back(input.node.get());
  }
  return false;
}

Gradients backward(const Tensor& loss, std::shared_ptr<Node> root, Graph graph) {
  check(loss.numel() == 1, "[backward] expected a scalar loss, got shape {}", loss.shape());
  check(root && !root->frozen, "[backward] expected a loss that depends on a variable, got {}", why_constant(root));
  std::vector<Reached> variables = propagate(root, ones_like(loss), nullptr, {}, graph);
  std::vector<Gradients::Entry> entries;
  for (auto v = variables.rbegin(); v != variables.rend(); ++v)
    entries.push_back({std::move(v->node), std::move(v->gradient)});
  return Gradients(loss, std::move(entries));
}

}  // namespace

Gradients backward(const Tensor& loss) {
  check(loss.defined(), "[backward] {}", expected_a_tensor);
  return backward(loss, loss.node(), Graph::keep);
}

Gradients backward(Tensor&& loss) {
  check(loss.defined(), "[backward] {}", expected_a_tensor);
  const Tensor value = loss.detach();
  std::shared_ptr<Node> root = loss.node();
  loss = Tensor();
  return backward(value, std::move(root), Graph::consume);
}

Tensor grad(const Tensor& y, const Tensor& x, const GradOptions& options) { return grad(y, Tensors{x}, options)[0]; }

Tensors grad(const Tensor& y, const Tensors& xs, const GradOptions& options) {
  check(y.defined(), "[grad] {}", expected_a_tensor);
  const Tensor& given = options.cotangent;
  check(given.defined() || y.numel() == 1, "[grad] expected a scalar or a cotangent of shape {}, got neither",
        y.shape());
  check(!given.defined() || (given.shape() == y.shape() && given.dtype() == y.dtype() && given.device() == y.device()),
        "[grad] expected a cotangent {} like y, got {}", describe(y), describe(given));
  NodeSet targets;
  for (const Tensor& x : xs) {
    check(x.requires_grad(), "[grad] expected tensors that require a gradient, got {} {}{}",
          x.node() ? "a frozen parameter" : "a constant", describe(x),
          x.node() ? "" : ": make a variable with variable(x)");
    targets.insert(x.node().get());
  }
  check(y.requires_grad(),
        "[grad] expected a y that depends on a variable, got {}, {} (if y is a result of grad(), set "
        ".create_graph = true there; if y is constant, its gradient is zero)",
        describe(y), why_constant(y.node()));
  const Tensor dy = given.defined() ? given : ones_like(y);
  return gradients_of(xs, propagate(y.node(), dy, &targets, {}, options.create_graph ? Graph::record : Graph::keep));
}

namespace detail {

std::pair<Tensor, Tensors> value_and_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& xs) {
  check(!xs.empty(), "[grad] expected at least one argument, got an empty list");
  note_inputs(xs);    // a checkpoint around this call computes their gradients, too
  Tensors own;        // the arguments as f gets them: each has a node that no other tensor has
  NodeSet variables;  // the nodes of the arguments that no other graph can reach
  for (const Tensor& x : xs) {
    check(x.defined() && is_float(x.dtype()), "[grad] expected f32 or f64 as argument {} of the function, got {}{}",
          own.size(), describe(x), x.defined() ? ": capture a tensor that is not differentiated" : "");
    if (grad_enabled() && x.requires_grad()) {
      own.push_back(alias(x));
    } else {
      own.push_back(variable(x));
      variables.insert(own.back().node().get());
    }
  }
  Tensor y;
  {
    const EnableGrad recording;
    y = f(own);
  }
  check(y.defined() && is_real(y.dtype()) && y.numel() == 1,
        "[grad] expected a function that returns a floating scalar, got {}{}", describe(y),
        y.defined() && is_real(y.dtype()) ? ": return its sum or its mean" : "");
  const bool record =
      grad_enabled() && y.requires_grad() && depends_on_others(y.node().get(), variables, own[0].node()->sequence);
  NodeSet targets;
  for (const Tensor& x : own) targets.insert(x.node().get());
  std::vector<Reached> found;
  if (y.requires_grad())
    found = propagate(y.node(), ones_like(y), &targets, {}, record ? Graph::record : Graph::consume);
  return {record ? y : y.detach(), gradients_of(own, found)};
}

Array take_gradient(std::size_t i) {
  if (!taking.node) return {};
  const Node::Input& input = taking.node->inputs[i];
  const auto entry = input.node ? taking.pending->find(input.node->sequence) : taking.pending->end();
  if (entry == taking.pending->end() || !entry->second.gradient.array().unique() ||
      entry->second.gradient.shape() != input.shape)
    return {};
  const Array taken = entry->second.gradient.array();
  taking.pending->erase(entry);
  return taken;
}

Tensors partial_gradients(const Tensor& y, const Tensor& dy, const Tensors& xs, bool create_graph) {
  Tensors result(xs.size());
  if (!y.node()) return result;
  NodeSet targets;
  for (const Tensor& x : xs) targets.insert(x.node().get());
  const std::vector<Reached> found =
      propagate(y.node(), dy, &targets, targets, create_graph ? Graph::record : Graph::keep);
  for (std::size_t i = 0; i < xs.size(); ++i)
    if (const auto entry = std::ranges::find(found, xs[i].node(), &Reached::node); entry != found.end())
      result[i] = entry->gradient;
  return result;
}

}  // namespace detail

}  // namespace plumb
