// A custom residual gate: one struct and one call that registers it for every study.
#include <plumb/vision.h>
using namespace plumb;

struct TanhGate : nn::Gate {  // x + tanh(a) f(LN(x)); a = 0 makes each block the identity
  Tensor a = parameter("a", zeros({1}), Role::gate);
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + tanh(a) * branch; }
};

int main(int argc, char** argv) {
  nn::register_method<TanhGate>("tanh_gate",
                                {.norm = nn::Norm::pre,
                                 .claims = {nn::InitProperty::identity_at_init, nn::InitProperty::zero_branch_gradient},
                                 .formula = "x + tanh(a) f(LN(x)), a = 0",
                                 .source = "this example"});
  return lab::depth_stability(argc, argv);  // try --gates tanh_gate,layerscale --depths 12,48 --seeds 0..4
}
