// A residual gate that reads the stream: highway networks (Srivastava et al. 2015), one struct, one line.
#include <plumb/plumb.h>
using namespace plumb;

struct Highway : nn::Gate {  // (1 - t) x + t f(LN(x)), t = sigmoid(W x + b)
  explicit Highway(const nn::GateContext& c)
      : w(parameter("w", {c.dim, c.dim}, nn::Init::truncated_normal(0.02), Role::gate)),
        b(parameter("b", {c.dim}, nn::Init::constant(-1), Role::gate)) {}
  Tensor values(const Tensor& skip) const override {
    return sigmoid(linear(skip, w, b));
  }  // t: the gate of passports and reports
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return skip + values(skip) * (branch - skip);
  }
  Tensor w, b;
};

int main(int argc, char** argv) {
  nn::register_gate<Highway>("highway", {.growth = nn::Growth::unstated,
                                         .formula = "(1 - t) x + t f(LN(x)), t = sigmoid(W x + b), b = -1",
                                         .source = "Srivastava et al. 2015, Highway networks"});
  return lab::depth_stability(argc, argv);  // --gates highway,layerscale --depths 12,48 --seeds 0..4
}
