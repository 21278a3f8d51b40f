// Dynamic Tanh (Zhu et al. 2025): pre-norm in which y = w tanh(a x) + b replaces every norm, including the final one.
// The initial values are a = 0.5 (a scalar), w = 1 and b = 0. For language models, the authors drop b, scale the
// embedding, and choose the initial value of a by model size and position in the network. This variant for language
// models is not implemented.
#include "nn/gates/gate.h"
#include "nn/gates/methods.h"
#include "nn/layers/norm.h"

namespace plumb::nn {

Method methods::dyt() {
  return {
      .name = "dyt",
      .norm = Norm::pre,
      .growth = Growth::geometric,  // holds until tanh saturates: small signals keep their size
      .formula = "x + f(w tanh(a x) + b), a = 0.5, for all norms",
      .source = "Zhu et al. 2025, Transformers without normalization",
      .use =
          "Pre-norm without statistics over channels. The authors' README reports on ImageNet 82.5 % top-1 with "
          "ViT-B and 83.6 % with ViT-L; LayerNorm has 82.3 and 83.1 %.",
      .pitfalls =
          "tanh saturates if the stream is large. The learned scalar a decides at which size, and nothing bounds a.",
      .build = gates_from<ScaleGate>,
      .norm_layer = [](std::int64_t dim, double) { return std::make_unique<DyT>(dim); }};
}

}  // namespace plumb::nn
