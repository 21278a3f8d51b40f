// A gate whose branches read a softmax-weighted mean of the outputs of all earlier branches, in running form.
#include <plumb/vision.h>
using namespace plumb;

// Branch k reads u_k = sum_i softmax_i(a) f_i over the earlier branches i < k (the first branch reads x_0). The logit
// a_i of each output is learned and starts at 0, where u_k is the mean. Only differences of logits matter, so the first
// logit stays 0. The stream itself is the plain sum x + f.
// A logit belongs to the output and not to the reader, so two running values are enough, at a cost linear in depth:
//   carried[0] = u_k [B, T, D],   carried[1] = log sum_i exp(a_i) [B, T, 1]
// An output with the share p = sigmoid(a_k - carried[1]) moves the mean from u to u + p (f - u), without exp(a_k),
// which could overflow.
struct DepthAttention : nn::Gate {
  explicit DepthAttention(const nn::GateContext& c) : first(c.index() == 0) {
    const bool last = c.index() + 1 == c.count();  // no branch reads the last output, so it has no logit
    if (!first && !last) a = parameter("a", zeros({1}), Role::gate);
  }
  static nn::Stream open(const Tensor& x) { return {x, {zeros_like(x), zeros_like(slice(x, 2, 0, 1))}}; }

  Tensor read(const nn::Stream& s) const override { return first ? s.x : s.carried[0]; }
  void join(nn::Stream& s, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    const Tensor kept = row_scale.defined() ? branch * reshape(row_scale, {-1, 1, 1}) : branch;
    if (first) s.carried[0] = kept;
    if (a.defined()) {
      s.carried[0] = gated_residual(s.carried[0], kept - s.carried[0], share(s));
      s.carried[1] = s.carried[1] + softplus(a - s.carried[1]);  // log(exp(carried[1]) + exp(a))
    }
    s.x = s.x + kept;
    if (norm) s.x = (*norm)(s.x);
  }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  // The share of this output among the outputs so far [1]: what layers.csv shows as the gate.
  Tensor share(const nn::Stream& before) const { return sigmoid(a - before.carried[1][0][0]); }
  Tensor values(const nn::Stream& before) const override { return a.defined() ? share(before) : Tensor(); }

  Tensor a;  // undefined for the first and the last output
  bool first;
};

int main(int argc, char** argv) {
  nn::register_method<DepthAttention>("depth_attention", {.growth = nn::Growth::unstated,
                                                          .formula = "x + f(LN(sum_i softmax_i(a) f_i)), a = 0",
                                                          .source = "this example",
                                                          .open = DepthAttention::open});
  return lab::depth_stability(argc, argv);  // try --gates depth_attention,pre --depths 12,24 --seeds 0..4
}
