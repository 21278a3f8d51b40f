// A gate that carries tensors along the stack: each junction computes new weights for the outputs of all earlier
// branches.
#include <plumb/vision.h>
using namespace plumb;

// y = x_0 + sum_i w_i f_i over the n branches so far, with w_i = 2 sigmoid(q . rms(f_i) / t) at each token. The query
// q [D] is learned and starts at 0, where every w_i is 1 and y is the plain sum of pre-norm.
struct Mixing : nn::Gate {
  explicit Mixing(const nn::GateContext& c)
      : q(parameter("q", {c.dim}, nn::Init::constant(0), Role::gate)), t(c.constant("temperature")) {}

  // Overrides join(), the whole junction, because combine() sees only the skip and one branch. stream.carried holds
  // x_0, then the output of each branch.
  void join(nn::Stream& stream, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    const Tensor kept = row_scale.defined() ? branch * reshape(row_scale, {-1, 1, 1}) : branch;  // stochastic depth
    stream.carried.push_back(kept);
    const Tensor f = stack({stream.carried.begin() + 1, stream.carried.end()}, 2);  // [B, T, n, D]
    const Tensor w = 2 * sigmoid(matmul(rms_norm(f, ones_like(q), 1e-6), q) / t);   // [B, T, n]
    const Tensor y = stream.carried[0] + sum(unsqueeze(w, -1) * f, 2);              // [B, T, D]
    stream.x = norm ? (*norm)(y) : y;
  }
  // Training calls join() and not these two functions. combine() is the junction if all weights are 1. added() is the
  // term that the reports measure: this branch, without the effect of the new weights on earlier branches. values()
  // keeps its default, q, because the weights do not follow from one stream.
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }

  Tensor q;
  double t;
};

int main(int argc, char** argv) {
  nn::register_method<Mixing>(
      "mixing",
      {.formula = "x_0 + sum_i w_i f_i, w_i = 2 sigmoid(q . rms(f_i) / t), q = 0",
       .source = "this example",
       .pitfalls = "Keeps the outputs of all branches; time and memory grow with the square of the depth.",
       .constants = {{.name = "temperature", .standard = 1, .least = 0, .above = true, .meaning = "t of the sigmoid"}},
       .open = [](const Tensor& x) {
         return nn::Stream{x, {x}};
       }});
  // Try --gates mixing,mixing:temperature=0.1,pre --depths 12,24 --seeds 0..4
  return lab::depth_stability(argc, argv);
}
