// What a training step's own passes tell about signal propagation: norms at every residual junction.
#pragma once

#include <vector>

#include "autograd/backward.h"
#include "nn/stack.h"

namespace plumb::lab {

// One branch of one block. Norms are L2 over a sample's tokens and channels, averaged over the samples of the batch.
struct JunctionStatistics {
  std::int64_t block;
  const char* branch;                                   // "attn" or "mlp"
  double stream_norm;                                   // ‖x‖, of what enters the junction
  double branch_norm;                                   // ‖g(x)‖, of what the gate adds to it
  double ratio;                                         // mean of ‖g(x)‖ / ‖x‖ over samples (Touvron et al. 2021, figure 2)
  std::optional<double> gate_mean = {}, gate_max = {};  // mean and largest magnitude of the gate's entries; absent without any
  double grad_norm = 0;                                 // of the loss by the branch's own weights and biases
};

// Watches the forward passes that happen while it lives.
class JunctionProbe {
 public:
  explicit JunctionProbe(const nn::Stack& stack);

  // The statistics of the forward passes so far, with the gradients of the backward pass that followed.
  std::vector<JunctionStatistics> finish(const Gradients& gradients);

 private:
  std::vector<Handle> handles_;
  std::vector<JunctionStatistics> seen_;
};

}  // namespace plumb::lab
