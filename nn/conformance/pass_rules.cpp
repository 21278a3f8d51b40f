// Rules that compare passes through a network, or look at the values of a pass.
#include <algorithm>

#include "autograd/backward.h"
#include "autograd/debug.h"
#include "autograd/ops.h"
#include "core/random_scope.h"
#include "nn/conformance/networks.h"
#include "nn/conformance/rules.h"
#include "nn/evaluation_scope.h"

namespace plumb::nn::rules {

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

Outcome checkpointed(const MethodChoice& method) {
  const DefaultsScope scope(f64_reference);
  return recomputed(Shaken(method));
}

namespace {

// Returns the gradients of all variables, followed by the output.
Tensors pass_of(const MethodChoice& method, Defaults where) {
  const DefaultsScope scope(where);
  const Shaken s(method);
  const Tensor y = s.output();
  Tensors results = grad(sum(y * random_normal(y.shape(), 2, "cotangent")), s.variables);
  results.push_back(y);
  return results;
}

}  // namespace

Outcome devices(const MethodChoice& method) {
  const Tensors expected = pass_of(method, f64_reference);
  const double f64_error = largest_difference(pass_of(method, f64_cpu), expected),
               f32_error = largest_difference(pass_of(method, f32_cpu), expected);
  return {f64_error <= 1e-9 && f32_error <= 2e-4,
          fmt::format("cpu f64 {:.1e}, limit 1e-09; cpu f32 {:.1e}, limit 2e-04", f64_error, f32_error)};
}

// In evaluation, the result for a sample must not depend on the other samples of its batch.
Outcome samples(const MethodChoice& method) {
  const DefaultsScope scope(f64_cpu);
  const auto model = make_vit(method);
  shake(*model);
  calibrate(*model, images());
  model->eval();
  const Tensor all = images(), together = (*model)(all);
  double gap = 0;
  for (std::int64_t i = 0; i < all.dim(0); ++i)
    gap = worse(gap, largest_difference({(*model)(slice(all, 0, i, i + 1))}, {slice(together, 0, i, i + 1)}));
  if (!(gap <= 1e-9))
    return {false, fmt::format("in evaluation, the output for an image changes by {:.1e} with the other images of its "
                               "batch: a gate must not compute across axis 0",
                               gap)};
  return {true, fmt::format("independent of each other in evaluation, error {:.1e}", gap)};
}

namespace {

// The output of a training pass.
Tensor trained(const Shaken& s, std::uint64_t seed, std::uint32_t step) {
  const RandomScope training({.seed = seed, .step = step});
  return s.output();
}

}  // namespace

// Compares training and evaluation of the same weights at several training steps, and evaluation in two RandomScopes.
Outcome at_steps(const MethodChoice& method, const std::vector<std::uint32_t>& steps) {
  const DefaultsScope scope(f32_cpu);
  double worst = 0;
  std::vector<std::uint32_t> random;  // the steps at which training draws random numbers
  for (const std::uint32_t step : steps) {
    const Shaken s(method);
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
    const bool draws = !(gap <= 1e-6) && largest_difference({trained(Shaken(method), 2, step)}, {y}) != 0;
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

Outcome deep(const MethodChoice& method) {
  const DefaultsScope scope(f32_cpu);
  const auto stack = make_stack(method, 48);
  const Tensor x = variable(stream()), y = (*stack)(x), dx = grad(sum(y * random_normal(y.shape(), 2, "cotangent")), x);
  return {all_finite(y.array()) && all_finite(dx.array()),
          fmt::format("48 blocks: largest value {:.2g}, largest gradient {:.2g}", largest(y), largest(dx))};
}

Outcome bf16(const MethodChoice& method) {
  const auto stack = make_stack(method, 24);
  std::vector<double> shares;
  std::vector<Handle> watch;
  for (auto& block : stack->blocks())
    watch.push_back(block.observe([&](const JunctionPass& j) {
      const Tensor added = j.gate.added(j.before.x, j.branch_value);
      if (!(largest(added) == 0)) shares.push_back(unchanged_in_bf16(j.before.x.values(), added.values()));
    }));
  (*stack)(stream());
  if (shares.empty()) return {true, "the branches add nothing at the start"};
  return {true, fmt::format("24 blocks: bf16 would lose {:.0f} % of what a branch adds",
                            100 * *std::ranges::max_element(shares))};
}

}  // namespace plumb::nn::rules
