// ResiDual (Xie et al. 2023) has two streams x and r, with the same initial value x0 = r0. At each branch, a = f(x), r
// <- r + a, x <- LN(x + a). The output is x + LN_f(r). LN_f is the final norm of the stack, so a model has no further
// norm. The authors' eps of LN_f is 1e-7; in Plumb, LN_f has the eps of all other norms.
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"

namespace plumb::nn {
namespace {

struct DualGate : Gate {
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, branch, {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  void join(Stream& s, const Tensor& branch, const Tensor& row_scale, const Layer* norm) const override {
    s.carried[0] = mix(s.carried[0], branch, row_scale);
    s.x = (*norm)(mix(s.x, branch, row_scale));
  }
};

}  // namespace

Method methods::residual_dual() {
  return {
      .name = "residual_dual",
      .norm = Norm::post,
      .formula = "x = LN(x + f(x)), r = r + f(x), out x + LN(r)",
      .source = "Xie et al. 2023, ResiDual: transformer with dual residual connections",
      .use =
          "Post-norm and pre-norm at once: the stream x is post-norm, the stream r sums all branches as pre-norm "
          "does. The method adds no parameters, but carries a second stream.",
      .pitfalls = "The final norm applies only to the second stream, r.",
      .build = gates_from<DualGate>,
      .open =
          [](const Tensor& x) {
            return Stream{x, {x}};
          },
      .close = [](const Stream& s, const Layer* norm) { return s.x + (norm ? (*norm)(s.carried[0]) : s.carried[0]); }};
}

}  // namespace plumb::nn
