#include "nn/gates/gate_rules.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "autograd/autograd.h"
#include "autograd/node.h"
#include "core/names.h"
#include "nn/audit.h"
#include "nn/evaluation_scope.h"
#include "nn/gates/gate_check.h"
#include "nn/io/weights.h"
#include "nn/models/vit.h"
#include "nn/optim/optimizer.h"

namespace plumb::nn {
namespace {

using Outcome = RuleOutcome;

constexpr std::int64_t dim = 8, heads = 2, classes = 5, depth = 3;
constexpr Defaults f64_reference{DType::f64, Device::reference}, f64_cpu{DType::f64, Device::cpu},
    f32_cpu{DType::f32, Device::cpu};

std::vector<BranchChoice> junctions() { return transformer_block({.heads = heads}, {.hidden = 4 * dim}); }

std::unique_ptr<Stack> make_stack(const GateChoice& gate, std::int64_t blocks = depth,
                                  const std::vector<BranchChoice>& list = junctions()) {
  auto stack = std::make_unique<Stack>(
      StackOptions{.dim = dim, .depth = blocks, .gate = gate, .junctions = list, .final_norm = true});
  initialize(*stack, 0);
  return stack;
}

std::unique_ptr<ViT> make_vit(const GateChoice& gate, std::uint64_t seed = 0) {
  return std::make_unique<ViT>(ViTOptions{.image = 8,
                                          .patch = 4,
                                          .channels = 1,
                                          .classes = classes,
                                          .dim = dim,
                                          .depth = 2,
                                          .heads = heads,
                                          .gate = gate,
                                          .pool = Pool::token,
                                          .seed = seed});
}

Tensor stream() { return random_normal({2, 5, dim}, 0, "stream"); }
Tensor images() { return random_normal({3, 1, 8, 8}, 0, "images"); }
Tensor labels() { return integers({0, 3, 4}, {3}); }

// Moves every trained parameter away from its initial value, so that no 0 and no 1 hides a term of a gradient.
void shake(const Module& module) {
  for (const Parameter& p : module.parameters()) {
    if (is_measured(p.role)) continue;
    const Tensor noise = random_normal(p.value.shape(), 1, p.name) * (p.value.shape().rank() > 1 ? 0.3 : 0.2);
    copy_into((p.value.detach() + noise).array(), p.value.array());
  }
}

// Returns the larger of two values; NaN if a value is NaN.
double worse(double a, double b) { return std::isnan(a) || std::isnan(b) ? std::nan("") : std::max(a, b); }

double largest(const Tensor& x) {
  double m = 0;
  for (double v : x.values()) m = worse(m, std::abs(v));
  return m;
}

// Returns the largest difference between corresponding elements, divided by the largest element of b.
double largest_difference(const Tensors& a, const Tensors& b) {
  double gap = 0, size = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const std::vector<double> x = a[i].values(), y = b[i].values();
    check(x.size() == y.size(), "expected shape {}, got {}", b[i].shape(), a[i].shape());
    for (std::size_t j = 0; j < x.size(); ++j) {
      gap = worse(gap, std::abs(x[j] - y[j]));
      size = std::max(size, std::abs(y[j]));
    }
  }
  return gap == 0 ? 0 : gap / size;
}

// A stack with parameters that are moved away from their initial values, an input x of the stack, and the variables for
// gradients: the parameters, then x.
struct Shaken {
  explicit Shaken(const GateChoice& gate, std::int64_t blocks = depth) : Shaken(make_stack(gate, blocks)) {}
  explicit Shaken(std::unique_ptr<Stack> of, StackInputs more = {}) : stack(std::move(of)), inputs(std::move(more)) {
    shake(*stack);
    for (const Parameter& p : stack->parameters())
      if (is_measured(p.role))
        measured.emplace_back(p.value, to_vector(p.value.array()));
      else
        variables.push_back(p.value);
    variables.push_back(x);
  }
  // Computes the stack on x. Statistics and counters start with the same values in each call, because a gate may count
  // its passes.
  Tensor output() const {
    for (const auto& [value, initial] : measured)
      copy_into(tensor(initial, value.shape(), {value.dtype(), value.device()}).array(), value.array());
    return stack->close(stack->run(x, inputs));
  }
  std::unique_ptr<Stack> stack;
  StackInputs inputs;
  std::vector<std::pair<Tensor, std::vector<double>>> measured;
  Tensor x = variable(stream());
  Tensors variables;
};

// Returns the gradients of all variables, followed by the output.
Tensors pass_of(const GateChoice& gate, Defaults where) {
  const DefaultsScope scope(where);
  const Shaken s(gate);
  const Tensor y = s.output();
  Tensors results = grad(sum(y * random_normal(y.shape(), 2, "cotangent")), s.variables);
  results.push_back(y);
  return results;
}

Outcome limited(double error, double limit) {
  return {error <= limit, fmt::format("error {:.1e}, limit {:g}", error, limit)};
}

Outcome builds(const GateChoice& gate) {
  const auto stack = make_stack(gate);
  return {true, fmt::format("{} parameters in {} blocks", stack->parameter_count(), depth)};
}

// Checks that every variable that gets a gradient is a parameter of the model. Optimizers, weight files and
// --list-gates use parameters only.
Outcome registered(const GateChoice& gate) {
  const auto model = make_vit(gate);
  std::set<const Node*> known;
  for (const Parameter& p : model->parameters()) known.insert(p.value.node().get());
  const Gradients g = backward(cross_entropy((*model)(images()), labels()));
  std::vector<std::string> strangers;
  for (const Gradients::Entry& e : g.entries()) {
    if (known.contains(e.node.get())) continue;
    const std::string stranger = fmt::format(
        "{} {}", e.node->name.empty() ? "a tensor" : fmt::format("\"{}\"", e.node->name), e.gradient.shape());
    if (std::ranges::find(strangers, stranger) == strangers.end()) strangers.push_back(stranger);
  }
  if (strangers.empty())
    return {true, fmt::format("{} parameters get a gradient, and no other variable", g.entries().size())};
  return {false, fmt::format("a gradient goes to {}, which the model does not know: no optimizer would train it, and "
                             "no file would hold it. Make tensors with parameter(), and register member modules with "
                             "child()",
                             some_of(strangers))};
}

Outcome gradients_of_order(const GateChoice& gate, CheckGradientsOptions options) {
  const DefaultsScope scope(f64_reference);
  const Shaken s(gate, 2);
  return limited(check_gradients([&] { return s.output(); }, s.variables, options), options.tolerance);
}

Outcome gradients(const GateChoice& gate, const std::vector<std::uint32_t>& steps) {
  Outcome outcome{};
  for (const std::uint32_t step : steps) {
    const RandomScope random({.seed = 1, .step = step});
    outcome = gradients_of_order(gate, {.order = 1, .tolerance = 1e-6, .elements = 2, .directions = 2});
    if (step > 0) outcome.detail += fmt::format(" at step {}", step);
    if (!outcome.passed) break;
  }
  return outcome;
}
Outcome second_order(const GateChoice& gate) {
  return gradients_of_order(gate, {.order = 2, .tolerance = 1e-5, .elements = 1, .directions = 1});
}

struct Found {
  bool holds;
  std::string measure;
};

Found identity_at_init(const GateChoice& gate) {
  const auto stack = make_stack(gate);
  double changed = 0;
  std::vector<Handle> watch;
  for (const auto& block : stack->blocks())
    watch.push_back(block->observe(
        [&](const JunctionPass& j) { changed = worse(changed, largest_difference({j.output}, {j.before.x})); }));
  (*stack)(stream());
  return {changed == 0, fmt::format("a block changes its input by {:.1e}", changed)};
}

Found zero_branch_gradient(const GateChoice& gate) {
  const auto model = make_vit(gate);
  const Gradients g = backward(cross_entropy((*model)(images()), labels()));
  double most = 0;
  for (const auto& junction : model->blocks().front()->junctions())
    for (WeightLayer* layer : junction->branch().weight_layers())
      if (const Tensor d = g.find(layer->own("weight").value); d.defined()) most = worse(most, largest(d));
  return {most == 0, most == 0 && gate->paper.zero_head ? "not measurable: the head starts at 0"
                                                        : fmt::format("largest gradient {:.1e}", most)};
}

Found loss_is_log_classes(const GateChoice& gate) {
  const NoGrad no_grad;
  const double loss = cross_entropy((*make_vit(gate))(images()), labels()).item(),
               expected = std::log(static_cast<double>(classes));
  return {std::abs(loss - expected) < 1e-12, fmt::format("loss {:.6f}, ln({}) = {:.6f}", loss, classes, expected)};
}

// A property that the method claims must hold. If a property holds that the method does not claim, the rule only
// reports this property.
template <InitProperty c, Found (*measure)(const GateChoice&)>
Outcome claim(const GateChoice& gate) {
  const DefaultsScope scope(f64_reference);
  const Found found = measure(gate);
  const bool claimed = gate->claims_that(c);
  return {found.holds || !claimed, found.measure + (claimed ? "" : "; not claimed")};
}

// Checks that the initial values are as declared, also after passes that must not change parameters. A training pass
// may change statistics and counters.
Outcome initial_values(const GateChoice& gate) {
  const auto model = make_vit(gate, 7);
  std::vector<std::pair<Tensor, Tensor>> measured;
  for (const Parameter& p : model->parameters())
    if (is_measured(p.role)) measured.emplace_back(p.value, p.value.detach() + 0.0);
  AdamW optimizer(model->parameters(), {.lr = 0});
  optimizer.step_own(
      backward(cross_entropy((*model)(images()), labels())));  // the rule "registered" reports other variables
  for (const auto& [value, initial] : measured) copy_into(initial.array(), value.array());
  audit_init(*model, 7);
  return {true, "as declared"};
}

// Returns the parameters of the gates: the parameters of the blocks that do not belong to a branch or to the norm of a
// junction.
std::vector<Parameter> gate_parameters(const Stack& stack) {
  std::set<const Node*> others;
  const auto leave_out = [&](const Module& module) {
    for (const Parameter& p : module.parameters()) others.insert(p.value.node().get());
  };
  for (const Junction* junction : stack.junctions()) {
    leave_out(junction->branch());
    if (const Layer* const norm = junction->norm_layer()) leave_out(*norm);
  }
  std::vector<Parameter> of_gates;
  for (const Parameter& p : stack.parameters())
    if (p.name.starts_with("blocks.") && !others.contains(p.value.node().get())) of_gates.push_back(p);
  return of_gates;
}

Outcome roles(const GateChoice& gate) {
  const auto stack = make_stack(gate);
  std::vector<std::string> decaying;
  std::size_t count = 0;
  for (const Parameter& p : gate_parameters(*stack)) {
    if (is_measured(p.role)) continue;
    ++count;
    if (p.decay_factor != 0)
      decaying.push_back(fmt::format("{} (role {}) has decay factor {:g}", p.name, nn::name(p.role), p.decay_factor));
  }
  return {decaying.empty(),
          decaying.empty()
              ? fmt::format("{} tensors without decay", count)
              : fmt::format(
                    "{}: weight decay would pull the gate to 0; register it with Role::gate, or set its decay_factor "
                    "to 0 (own(), each_parameter())",
                    some_of(decaying))};
}

// Takes 5 training steps, and returns the names of the parameters that did not move. `loss` computes the loss of a
// step.
std::vector<std::string> unmoved(const Module& model, const std::function<Tensor()>& loss) {
  std::map<std::string, std::vector<double>> before;
  for (const Parameter& p : model.parameters()) before[p.name] = p.value.values();
  AdamW optimizer(model.parameters(), {.lr = 1e-2, .weight_decay = 0});
  const std::uint32_t first = random_state().step;
  for (std::uint32_t step = 0; step < 5; ++step) {
    const RandomScope random({.seed = 1, .step = first + step});
    optimizer.step_own(backward(loss()));  // the rule "registered" reports other variables
  }
  std::vector<std::string> still;
  for (const Parameter& p : model.parameters())
    if (!is_measured(p.role) && p.value.values() == before[p.name]) still.push_back(p.name);
  return still;
}

Outcome learning(const GateChoice& gate) {
  const DefaultsScope scope(f64_reference);
  const auto model = make_vit(gate);
  calibrate(*model, images());
  const std::vector<std::string> still = unmoved(*model, [&] { return cross_entropy((*model)(images()), labels()); });
  return {still.empty(),
          still.empty() ? "5 steps move every parameter" : fmt::format("5 steps do not move {}", some_of(still))};
}

// Checks that the term that the gate adds is proportional to the factor of the sample. If all samples are dropped, the
// branches have no effect.
Outcome stochastic_depth(const GateChoice& gate) {
  const DefaultsScope scope(f64_reference);
  double proportion = 0, kept = 0;  // `kept`: difference between a dropped sample and its skip
  {
    const Shaken s(gate);
    std::vector<Handle> watch;
    for (const auto& block : s.stack->blocks())
      watch.push_back(block->observe([&](const JunctionPass& j) {
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
                 .gate = gate,
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

// Compares blocks that are computed again in the backward pass with blocks whose activations are kept.
Outcome recomputed(const Shaken& s) {
  const auto run = [&](bool recompute) {
    s.stack->checkpoint_blocks(recompute);
    const Tensor y = s.output();
    Tensors results = grad(sum(y * y), s.variables);
    results.push_back(y);
    return results;
  };
  const Tensors again = run(true), kept = run(false);
  if (!same_bytes(again.back().array(), kept.back().array()))
    return {false, fmt::format("checkpointed blocks change the output by {:.1e}: the forward pass must not depend on "
                               "earlier passes",
                               largest_difference({again.back()}, {kept.back()}))};
  return limited(largest_difference(again, kept), 1e-12);
}

Outcome checkpointed(const GateChoice& gate) {
  const DefaultsScope scope(f64_reference);
  return recomputed(Shaken(gate));
}

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
                               .memory = Memory{.x = random_normal({2, 4, dim}, 0, "memory"),
                                                .position = random_normal({4, dim}, 0, "memory position")}};
  return {{3, {narrow}}, {2, {narrow, attention, narrow.named("mlp2")}}, {2, {attention, cross, narrow}, of_decoder}};
}

std::string first_line(const std::string& message) { return message.substr(0, message.find('\n')); }

// The calls of Method::build while a stack is built.
struct Building {
  std::vector<GateContext> contexts;
  std::string error;  // the first line of the Error that `build` threw; empty without an Error

  // Returns whether `build` threw an Error that says which blocks the method needs.
  bool refused() const {
    return !error.starts_with("internal error") && error.find("expected blocks") != std::string::npos;
  }
};

// Returns the method with a `build` that writes its calls to `building`, which must live until the stack is built.
GateChoice watched(const GateChoice& gate, Building& building) {
  Method method = *gate;
  method.build = [build = gate->build, &building](const GateContext& c) {
    building.contexts.push_back(c);
    try {
      return build(c);
    } catch (const Error& e) {
      building.error = first_line(e.what());
      throw;
    }
  };
  return method;
}

// Checks that the method was told the places that the junctions have. A difference is a bug in Plumb.
void check_places(const Stack& stack, const Building& building) {
  const std::vector<Junction*> all = stack.junctions();
  const std::int64_t count = std::ssize(all);
  for (std::int64_t i = 0; i < count; ++i) {
    const Junction& junction = *all[static_cast<std::size_t>(i)];
    const JunctionPlace& place = junction.place();
    const GateContext told = building.contexts.at(static_cast<std::size_t>(place.block)).at(place.junction);
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
    Tensor forward(const Tensor& x) const override { return stack.close(stack.run(x, inputs)); }
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
    check(all_finite(y.array()), "[check_gate] expected finite values, got inf or NaN at step {}", random_state().step);
    return sum(y * random_normal(y.shape(), 2, "cotangent"));
  };
  const Gradients g = backward(loss());
  std::vector<std::string> unused;
  for (const Parameter& p : stack->parameters())
    if (!p.frozen && !g.find(p.value).defined()) unused.push_back(p.name);
  if (!unused.empty()) return {false, fmt::format("the output does not depend on {}", some_of(unused))};
  const std::vector<std::string> still = unmoved(*stack, loss);
  if (!still.empty()) return {false, fmt::format("5 steps do not move {}", some_of(still))};
  return recomputed(Shaken(std::move(stack), inputs));
}

// Checks blocks of one and of three junctions, and blocks of a decoder. A method that has no form for such blocks may
// refuse them.
Outcome other_junctions(const GateChoice& gate) {
  const DefaultsScope scope(f64_reference);
  std::vector<std::string> details;
  for (const OtherBlocks& other : other_blocks()) {
    const std::string blocks = other.description();
    Building building;
    std::unique_ptr<Stack> stack;
    try {
      stack = make_stack(watched(gate, building), other.blocks, other.junctions);
    } catch (const DeviceLost&) {
      throw;
    } catch (const std::exception& e) {
      if (!building.refused())
        return {false, fmt::format("{} cannot be built: {}: build one gate for each junction (gate_per_branch, "
                                   "gate_per_junction), or let Method::build throw an Error of the form \"expected "
                                   "blocks of ..\"",
                                   blocks, first_line(e.what()))};
      details.push_back(fmt::format("{}: not applicable, {}", blocks, building.error));
      continue;
    }
    check_places(*stack, building);
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
      if (!learning(gate).passed || !checkpointed(gate).passed)
        return {true, "not checked, because the rule \"learning\" or \"checkpoint\" fails"};
      return {false, fmt::format("{}: {}. Blocks of 2 junctions (attn, mlp) do not have this problem: {}", blocks,
                                 outcome.detail,
                                 other.inputs.memory
                                     ? "do not assume that each branch reads only the stream, or is named attn or mlp"
                                     : "do not assume 2 junctions a block, but read branch(), junction, junctions, "
                                       "index() and count() of GateContext")};
    }
    details.push_back(fmt::format("{}: every parameter learns, checkpoint {}", blocks, outcome.detail));
  }
  return {true, fmt::format("{}", fmt::join(details, "; "))};
}

Outcome devices(const GateChoice& gate) {
  const Tensors expected = pass_of(gate, f64_reference);
  const double f64_error = largest_difference(pass_of(gate, f64_cpu), expected),
               f32_error = largest_difference(pass_of(gate, f32_cpu), expected);
  return {f64_error <= 1e-9 && f32_error <= 2e-4,
          fmt::format("cpu f64 {:.1e}, limit 1e-09; cpu f32 {:.1e}, limit 2e-04", f64_error, f32_error)};
}

Outcome save_and_load(const GateChoice& gate) {
  const auto model = make_vit(gate, 1), other = make_vit(gate, 2);
  shake(*model);
  calibrate(*model, images());
  const auto file = std::filesystem::temp_directory_path() /
                    fmt::format("plumb_gate_check.{}.{}.safetensors", getpid(), static_cast<const void*>(model.get()));
  struct Removed {
    const std::filesystem::path& path;
    ~Removed() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  } const removed{file};
  save_weights(*model, file);
  load_weights(*other, file);
  model->eval();
  other->eval();
  const double gap = largest_difference({(*other)(images())}, {(*model)(images())});
  return {gap == 0,
          gap == 0 ? "the same outputs"
                   : fmt::format("outputs differ by {:.1e}: does the gate have state that is not a parameter?", gap)};
}

// The output of a training pass.
Tensor trained(const Shaken& s, std::uint64_t seed, std::uint32_t step) {
  const RandomScope training({.seed = seed, .step = step});
  return s.output();
}

// Compares training and evaluation of the same weights at several training steps, and evaluation in two RandomScopes.
Outcome at_steps(const GateChoice& gate, const std::vector<std::uint32_t>& steps) {
  const DefaultsScope scope(f32_cpu);
  double worst = 0;
  std::vector<std::uint32_t> random;  // the steps at which training draws random numbers
  for (const std::uint32_t step : steps) {
    const Shaken s(gate);
    const Tensor y = trained(s, 1, step), dx = grad(sum(y * random_normal(y.shape(), 2, "cotangent")), s.x);
    if (!all_finite(y.array()) || !all_finite(dx.array()))
      return {false, fmt::format("values or gradients are not finite at step {}", step)};
    const EvaluationScope evaluation(*s.stack);
    const auto evaluated = [&](std::uint32_t scope_step) {
      const RandomScope scope_of_step({.step = scope_step});
      return (*s.stack)(s.x);
    };
    const Tensor outside = evaluated(0);  // outside training, the step of random_state() is 0
    const double gap = largest_difference({outside}, {y});
    // Two fresh models that train with two seeds differ only by their random numbers.
    const bool draws = !(gap <= 1e-6) && largest_difference({trained(Shaken(gate), 2, step)}, {y}) != 0;
    if (!(gap <= 1e-6) && !draws)
      return {false, fmt::format("after step {}, evaluation differs from training by {:.1e}: a gate that changes "
                                 "with the step must read GateContext::training_step(), which evaluation keeps",
                                 step, gap)};
    // If a gate draws in training, only this comparison shows that evaluation reads the step of the scope.
    if (const double moved = largest_difference({evaluated(step)}, {outside}); moved != 0)
      return {false,
              fmt::format("after step {0}, evaluation in a RandomScope of step {0} differs from evaluation in one "
                          "of step 0 by {1:.1e}, but evaluation must not depend on the scope: a gate that changes "
                          "with the step must read GateContext::training_step() and not random_state(), and a "
                          "gate that draws random numbers must draw only in training",
                          step, moved)};
    if (draws)
      random.push_back(step);
    else
      worst = worse(worst, gap);
  }
  if (!random.empty())
    return {true, fmt::format("finite; evaluation does not depend on the RandomScope; evaluation is not compared with "
                              "training at steps {}, because the gate draws random numbers in training",
                              fmt::join(random, ", "))};
  return {true, fmt::format("steps {}: evaluation and training differ by {:.1e}", fmt::join(steps, ", "), worst)};
}

Outcome deep(const GateChoice& gate) {
  const DefaultsScope scope(f32_cpu);
  const auto stack = make_stack(gate, 48);
  const Tensor x = variable(stream()), y = (*stack)(x), dx = grad(sum(y * random_normal(y.shape(), 2, "cotangent")), x);
  return {all_finite(y.array()) && all_finite(dx.array()),
          fmt::format("48 blocks: largest value {:.2g}, largest gradient {:.2g}", largest(y), largest(dx))};
}

Outcome bf16(const GateChoice& gate) {
  const auto stack = make_stack(gate, 24);
  std::vector<double> shares;
  std::vector<Handle> watch;
  for (const auto& block : stack->blocks())
    watch.push_back(block->observe([&](const JunctionPass& j) {
      const Tensor added = j.gate.added(j.before.x, j.branch_value);
      if (!(largest(added) == 0)) shares.push_back(unchanged_in_bf16(j.before.x.values(), added.values()));
    }));
  (*stack)(stream());
  if (shares.empty()) return {true, "the branches add nothing at the start"};
  return {true, fmt::format("24 blocks: bf16 would lose {:.0f} % of what a branch adds",
                            100 * *std::ranges::max_element(shares))};
}

Outcome documented(const GateChoice& gate) {
  const bool both = !gate->formula.empty() && !gate->source.empty();
  return {both, both ? gate->formula : "set Method::formula and Method::source"};
}

}  // namespace

std::vector<GateRule> gate_rules(const CheckGateOptions& options) {
  return {
      {"builds", builds},
      {"registered", registered},
      {"gradients", [=](const GateChoice& gate) { return gradients(gate, options.steps); }},
      {"second order", second_order},
      {name(InitProperty::identity_at_init), claim<InitProperty::identity_at_init, identity_at_init>},
      {name(InitProperty::zero_branch_gradient), claim<InitProperty::zero_branch_gradient, zero_branch_gradient>},
      {name(InitProperty::loss_is_log_classes), claim<InitProperty::loss_is_log_classes, loss_is_log_classes>},
      {"initial values", initial_values},
      {"roles", roles},
      {"learning", learning},
      {"stochastic depth", stochastic_depth},
      {"checkpoint", checkpointed},
      {"junctions", other_junctions},
      {"devices and dtypes", devices},
      {"save and load", save_and_load},
      {"steps", [=](const GateChoice& gate) { return at_steps(gate, options.steps); }},
      {"depth", deep},
      {"bf16", bf16},
      {"documented", documented},
  };
}

}  // namespace plumb::nn
