// Dynamic Tanh (Zhu et al. 2025): pre-norm with y = w tanh(a x) + b in place of every norm, the final one included; a
// scalar = 0.5, w = 1, b = 0. For language models the authors drop b, scale the embedding and start a otherwise by size
// and place: not built.
#include "nn/gates/methods.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

Method methods::dyt() {
  return {.name = "dyt",
          .norm = Norm::pre,
          .growth = Growth::geometric,  // until tanh saturates: it keeps the size of small signals
          .formula = "x + f(w tanh(a x) + b), a = 0.5, for all norms",
          .source = "Zhu et al. 2025, Transformers without normalization",
          .use = "Pre-norm without statistics over channels.",
          .pitfalls = "tanh saturates for large streams: a decides, and is unconstrained.",
          .build = gate_per_branch<ScaleGate>,
          .norm_layer = [](std::int64_t dim, double) { return std::make_unique<DyT>(dim); }};
}

}  // namespace plumb::nn
