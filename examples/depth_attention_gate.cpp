// A gate whose branches read a softmax-weighted mean of the outputs of all earlier branches, in running form.
#include <plumb/plumb.h>
using namespace plumb;

// Branch k reads u_k = sum_i softmax_i(a) f_i over the earlier branches i < k (the first branch reads x_0). The logit
// a_i of each output is learned and starts at 0, where u_k is the mean. The stream itself is the plain sum x + f.
// A logit belongs to the output and not to the reader, so two running sums are enough, at a cost linear in depth:
//   carried[0] = sum_i exp(a_i) f_i [B, T, D],   carried[1] = sum_i exp(a_i) [B, T, 1]
struct DepthAttention : nn::Gate {
  explicit DepthAttention(const nn::GateContext& c) : first(c.index() == 0) {
    const bool last = c.index() + 1 == c.count();  // no branch reads the last output, so it has no logit
    a = last ? zeros({1}) : parameter("a", {1}, nn::Init::constant(0), Role::gate);
  }

  Tensor read(const nn::Stream& s) const override { return first ? s.x : s.carried[0] / s.carried[1]; }
  void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    const Tensor w = exp(a), kept = row_scale.defined() ? branch * reshape(row_scale, {-1, 1, 1}) : branch;
    s.carried[0] = gated_residual(s.carried[0], kept, w);
    s.carried[1] = s.carried[1] + w;
    s.x = s.x + kept;
    if (norm) s.x = (*norm)(s.x);
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  // The share of this output among the outputs so far: what layers.csv shows as the gate.
  Tensor values(const nn::Stream& before) const override {
    const Tensor w = exp(a);
    return w / (slice(slice(slice(before.carried[1], 0, 0, 1), 1, 0, 1), 2, 0, 1) + w);
  }

  Tensor a;
  bool first;
};

int main(int argc, char** argv) {
  nn::register_gate<DepthAttention>("depth_attention", {.growth = nn::Growth::unstated,
                                                        .formula = "x + f(LN(sum_i softmax_i(a) f_i)), a = 0",
                                                        .source = "this example",
                                                        .open = [](const Tensor& x) {
                                                          const Tensor none = zeros_like(x);
                                                          return nn::Stream{x, {none, slice(none, 2, 0, 1)}};
                                                        }});
  return lab::depth_stability(argc, argv);  // try --gates depth_attention,pre --depths 12,24 --seeds 0..4
}
