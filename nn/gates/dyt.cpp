// Dynamic Tanh (Zhu et al. 2025): pre-norm in which y = w tanh(a x) + b replaces every norm, including the final one.
// The scalar a starts at 0.5, w at 1, b at 0. For language models the authors drop b, scale the embedding and choose
// the start of a by model size and position in the network; this is not implemented.
#include "nn/gates/methods.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

Method methods::dyt() {
  return {.name = "dyt",
          .norm = Norm::pre,
          .growth = Growth::geometric,  // until tanh saturates: small signals keep their size
          .formula = "x + f(w tanh(a x) + b), a = 0.5, for all norms",
          .source = "Zhu et al. 2025, Transformers without normalization",
          .use = "Pre-norm without statistics over channels.",
          .pitfalls = "tanh saturates if the stream is large. The learned a decides when, and nothing bounds it.",
          .build = gate_per_branch<ScaleGate>,
          .norm_layer = [](std::int64_t dim, double) { return std::make_unique<DyT>(dim); }};
}

}  // namespace plumb::nn
