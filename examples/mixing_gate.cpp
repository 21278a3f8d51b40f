// A gate that carries something along the stack: each junction weighs the outputs of all branches so far anew.
#include <plumb/plumb.h>
using namespace plumb;

// y = x_0 + sum_i w_i f_i over the n branches so far, w_i = 2 sigmoid(q . rms(f_i) / t) at each token. The query q [D]
// is learned and starts at 0: then every w_i is 1, and y is pre-norm's plain sum.
struct Mixing : nn::Gate {
  explicit Mixing(const nn::GateContext& c)
      : q(parameter("q", {c.dim}, nn::Init::constant(0), Role::gate)), t(c.constant("temperature")) {}

  // The whole junction, as it needs more than the skip and one branch. stream.carried holds x_0, then each branch.
  void join(nn::Stream& stream, const Tensor& branch, const Tensor& row_scale, const nn::Layer* norm) const override {
    const Tensor kept = row_scale.defined() ? branch * reshape(row_scale, {-1, 1, 1}) : branch;  // stochastic depth
    stream.carried.push_back(kept);
    const Tensor f = stack({stream.carried.begin() + 1, stream.carried.end()}, 2);  // [B, T, n, D]
    const Tensor w = 2 * sigmoid(matmul(rms_norm(f, ones_like(q), 1e-6), q) / t);   // [B, T, n]
    const Tensor y = stream.carried[0] + sum(unsqueeze(w, -1) * f, 2);              // [B, T, D]
    stream.x = norm ? (*norm)(y) : y;
  }
  // The junction where all weights are 1. Passports measure by it: added() is what this branch brings, not what the new
  // weights change, and values() is left at q, as the weights do not follow from one stream.
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + branch; }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }

  Tensor q;
  double t;
};

int main(int argc, char** argv) {
  nn::register_gate<Mixing>(
      "mixing",
      {.formula = "x_0 + sum_i w_i f_i, w_i = 2 sigmoid(q . rms(f_i) / t), q = 0",
       .source = "this example",
       .pitfalls = "Keeps the outputs of all branches; time and memory grow with the square of the depth.",
       .constants = {{.name = "temperature", .standard = 1, .least = 0, .above = true, .meaning = "t of the sigmoid"}},
       .open = [](const Tensor& x) {
         return nn::Stream{x, {x}};
       }});
  // --gates mixing,mixing:temperature=0.1,pre --depths 12,24 --seeds 0..4
  return lab::depth_stability(argc, argv);
}
