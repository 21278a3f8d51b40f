// Scalar gate a = eps (CaiT's strengthened ReZero): x + a f(LN(x)), one scalar a branch that starts at eps, not 0. LayerScale tied to
// one number: the ablation of "per channel". eps by the same depth rule as LayerScale.
#include "nn/gates/gate.h"
#include "nn/gates/layerscale.h"

namespace plumb::nn {
namespace {

struct ScalarGate : ScaleGate {
  explicit ScalarGate(const GateContext& c) { scale_ = parameter("alpha", {1}, Init::constant(layerscale_init(c.blocks)), Role::gate); }
};

}  // namespace

Method scalar_gate() {
  return {.norm = Norm::pre,
          .formula = "x + a f(LN(x)), a = eps by depth",
          .source = "Touvron et al. 2021, Going deeper with image transformers",
          .build = gate_per_branch<ScalarGate>};
}

}  // namespace plumb::nn
