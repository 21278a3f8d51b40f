// Rules about junctions: what a gate does with dropped samples, and with blocks that are not transformer blocks.
#include <optional>

#include "autograd/backward.h"
#include "autograd/debug.h"
#include "autograd/ops.h"
#include "core/device_lost.h"
#include "core/names.h"
#include "core/random_scope.h"
#include "nn/conformance/networks.h"
#include "nn/conformance/rules.h"
#include "nn/evaluation_scope.h"

namespace plumb::nn::rules {

// Checks that the term that the gate adds is proportional to the factor of the sample. If all samples are dropped, the
// branches have no effect.
Outcome stochastic_depth(const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  double proportion = 0, kept = 0;  // `kept`: difference between a dropped sample and its skip
  {
    const Shaken s(method);
    std::vector<Handle> watch;
    for (auto& block : s.stack->blocks())
      watch.push_back(block.observe([&](const JunctionPass& j) {
        const auto with = [&](double factor) {
          return j.gate.combine_scaled(j.before.x.detach(), j.branch_value.detach(), full({2}, factor));
        };
        const Tensor none = with(0), once = with(1), twice = with(2);
        proportion = worse(proportion, largest_difference({twice - none}, {(once - none) * 2}));
        proportion = worse(proportion,
                           largest_difference({once}, {j.gate.combine(j.before.x.detach(), j.branch_value.detach())}));
        kept = worse(kept, largest_difference({none}, {j.before.x.detach()}));
      }));
    (*s.stack)(s.x);
  }
  const auto all_dropped = [&](double weights) {
    Stack stack({.dim = dim,
                 .depth = depth,
                 .method = method,
                 .junctions = junctions(),
                 .drop_path = {.rate = 0.9999},
                 .final_norm = true});
    shake(stack);
    for (const Junction* junction : stack.junctions())
      for (const Parameter& p : junction->branch().parameters())
        if (p.role == Role::weight) copy_into((p.value.detach() * weights).array(), p.value.array());
    return stack(stream());
  };
  const RandomScope random({.seed = 1, .step = 1});
  const double leak = largest_difference({all_dropped(2)}, {all_dropped(1)});
  if (!(proportion <= 1e-9))
    return {false, fmt::format("the term that the gate adds is not proportional to the factor of the sample (error "
                               "{:.1e}): override combine_scaled",
                               proportion)};
  if (!(leak <= 1e-12))
    return {false, fmt::format("dropped branches change the output by {:.1e}: combine_scaled, or the gate's own join, "
                               "must multiply the term that the branch adds by row_scale",
                               leak)};
  return {true, fmt::format("proportional, error {:.1e}; {}", proportion,
                            kept <= 1e-12 ? "a dropped sample equals its skip"
                                          : fmt::format("a dropped sample differs from its skip by {:.1e}: if this is "
                                                        "not intended, override combine_scaled",
                                                        kept))};
}

// A block with plain_scale() does not call combine(), but measures do. So both must be the same sum.
Outcome fused_sum(const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  const Shaken s(method);
  double error = 0;
  int fused = 0;
  std::vector<Handle> watch;
  for (auto& block : s.stack->blocks())
    watch.push_back(block.observe([&](const JunctionPass& j) {
      const std::optional<Tensor> scale = j.gate.plain_scale();
      if (!scale) return;
      ++fused;
      const Tensor x = j.before.x.detach(), f = j.branch_value.detach();
      error = worse(error, largest_difference({j.gate.combine(x, f)}, {gated_residual(x, f, *scale)}));
    }));
  (*s.stack)(s.x);
  if (fused == 0) return {true, "no junction has a plain_scale()"};
  if (!(error <= 1e-9))
    return {false, fmt::format("combine() differs from skip + plain_scale() * branch by {:.1e}: the block computes the "
                               "latter and never calls combine(); override only one of them",
                               error)};
  return {true, fmt::format("combine() is skip + plain_scale() * branch, error {:.1e}", error)};
}

namespace {

// Blocks with another number of junctions than a transformer block.
struct OtherBlocks {
  std::int64_t blocks;
  std::vector<BranchChoice> junctions;
  StackInputs inputs = {};

  // Returns a description such as "2 blocks of 3 junctions (mlp, attn, mlp2)".
  std::string description() const {
    std::vector<std::string> names;
    for (const BranchChoice& choice : junctions) names.push_back(choice.name);
    return fmt::format("{} blocks of {} junction{} ({})", blocks, names.size(), names.size() == 1 ? "" : "s",
                       fmt::join(names, ", "));
  }
};

// The blocks of the rule "junctions". The first stack has an odd number of junctions. This number must be at least 3,
// because a gate that weighs the outputs of earlier branches has nothing to weigh before the third junction. The last
// stack is the decoder of a DETR: its attention reads positions and a memory.
std::vector<OtherBlocks> other_blocks() {
  const BranchChoice narrow = mlp({.hidden = 2 * dim}), attention = self_attention({.heads = heads}),
                     cross = cross_attention({.heads = heads});
  const StackInputs of_decoder{.position = random_normal({5, dim}, 0, "position"),
                               .memory = {.x = random_normal({2, 4, dim}, 0, "memory"),
                                          .position = random_normal({4, dim}, 0, "memory position")}};
  return {{3, {narrow}}, {2, {narrow, attention, narrow.named("mlp2")}}, {2, {attention, cross, narrow}, of_decoder}};
}

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

// Returns the method with a `build` that adds the contexts of its calls to `told`, which must live until the stack is
// built.
MethodChoice watched(const MethodChoice& method, std::vector<GateContext>& told) {
  Method copy = *method;
  copy.build = [build = method->build, &told](const GateContext& c) {
    told.push_back(c);
    return build(c);
  };
  return copy;
}

// Checks that the method was told the places that the junctions have. A difference is a bug in Plumb.
void check_places(const Stack& stack, const std::vector<GateContext>& contexts) {
  const std::vector<Junction*> all = stack.junctions();
  const std::int64_t count = std::ssize(all);
  for (std::int64_t i = 0; i < count; ++i) {
    const Junction& junction = *all[static_cast<std::size_t>(i)];
    const JunctionPlace& place = junction.place();
    const GateContext told = contexts.at(static_cast<std::size_t>(place.block)).at(place.junction);
    internal_check(
        place.index() == i && place.count() == count && told.index() == i && told.count() == count &&
            told.branch().name == junction.branch_name(),
        "[block] expected junction {} of {} ({}), got {} of {} in the stack and {} of {} ({}) in GateContext", i, count,
        junction.branch_name(), place.index(), place.count(), told.index(), told.count(), told.branch().name);
  }
}

// Checks that the stack is finite, trains every parameter, and gives the same results with checkpoints.
Outcome works(std::unique_ptr<Stack> stack, const StackInputs& inputs) {
  struct WithInputs : Layer {  // calibrate() calls a layer
    WithInputs(const Stack& s, const StackInputs& i) : Layer("WithInputs"), stack(s), inputs(i) {}
    Tensor forward(const Tensor& x) const override { return stack(x, inputs); }
    const Stack& stack;
    const StackInputs& inputs;
  };
  const Tensor x = stream();
  WithInputs model(*stack, inputs);
  {
    const EvaluationScope evaluation(*stack);
    calibrate(model, x);
  }
  const auto loss = [&] {
    const Tensor y = model(x);
    check(all_finite(y.array()), "[check_method] expected finite values, got inf or NaN at step {}",
          random_state().step);
    return sum(y * random_normal(y.shape(), 2, "cotangent"));
  };
  const Gradients g = backward(loss());
  std::vector<std::string> unused;
  for (const Parameter& p : stack->parameters())
    if (!p.frozen() && !g.find(p.value).defined()) unused.push_back(p.name);
  if (!unused.empty()) return {false, fmt::format("the output does not depend on {}", some_of(unused))};
  const std::vector<std::string> still = unmoved(*stack, loss);
  if (!still.empty()) return {false, fmt::format("5 steps do not move {}", some_of(still))};
  return recomputed(Shaken(std::move(stack), inputs));
}

}  // namespace

// Checks blocks of one and of three junctions, and blocks of a decoder. A method that has no form for such blocks may
// refuse them.
Outcome other_junctions(const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  std::vector<std::string> details;
  for (const OtherBlocks& other : other_blocks()) {
    const std::string blocks = other.description();
    std::vector<GateContext> contexts;
    std::unique_ptr<Stack> stack;
    try {
      stack = make_stack(watched(method, contexts), other.blocks, other.junctions);
    } catch (const DeviceLost&) {
      throw;
    } catch (const NotApplicable& e) {
      details.push_back(fmt::format("{}: not applicable, {}", blocks, first_line(e.what())));
      continue;
    } catch (const std::exception& e) {
      return {false,
              fmt::format("{} cannot be built: {}: build one gate for each junction (gates_from, "
                          "gate_per_junction), or let Method::build refuse the block with GateContext::require()",
                          blocks, first_line(e.what()))};
    }
    check_places(*stack, contexts);
    Outcome outcome{};
    try {
      outcome = works(std::move(stack), other.inputs);
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& e) {
      outcome = {false, first_line(e.what())};
    }
    if (!outcome.passed) {
      // If transformer blocks have the problem too, the rules "learning" and "checkpoint" report it.
      if (!learning(method).passed || !checkpointed(method).passed)
        return {true, "not checked, because the rule \"learning\" or \"checkpoint\" fails"};
      return {false, fmt::format("{}: {}. Blocks of 2 junctions (attn, mlp) do not have this problem: {}", blocks,
                                 outcome.detail,
                                 other.inputs.memory.x.defined()
                                     ? "do not assume that each branch reads only the stream, or is named attn or mlp"
                                     : "do not assume 2 junctions a block, but read branch(), junction, junctions, "
                                       "index() and count() of GateContext")};
    }
    details.push_back(fmt::format("{}: every parameter learns, checkpoint {}", blocks, outcome.detail));
  }
  return {true, fmt::format("{}", fmt::join(details, "; "))};
}

}  // namespace plumb::nn::rules
