// A residual gate that computes its factors from the stream: highway networks (Srivastava et al. 2015).
#include <plumb/vision.h>
using namespace plumb;

struct Highway : nn::Gate {  // (1 - t) x + t f(LN(x)), t = sigmoid(W x + b)
  explicit Highway(const nn::GateContext& c)
      : w(parameter("w", {c.dim, c.dim}, nn::Init::truncated_normal(0.02), Role::gate)),
        b(parameter("b", {c.dim}, nn::Init::constant(-1), Role::gate)) {}
  // Returns t, the factor that layers.csv and the reports show as this gate.
  Tensor values(const nn::Stream& before) const override { return t(before.x); }
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + t(skip) * (branch - skip); }
  Tensor t(const Tensor& x) const { return sigmoid(linear(x, w, b)); }
  Tensor w, b;
};

int main(int argc, char** argv) {
  nn::register_method<Highway>("highway", {.growth = nn::Growth::unstated,
                                           .formula = "(1 - t) x + t f(LN(x)), t = sigmoid(W x + b), b = -1",
                                           .source = "Srivastava et al. 2015, Highway networks"});
  return lab::depth_stability(argc, argv);  // try --gates highway,layerscale --depths 12,48 --seeds 0..4
}
