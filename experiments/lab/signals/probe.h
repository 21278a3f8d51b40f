// Measures the layers of a stack of residual blocks: statistics of the signals and gradients at every branch, from one
// forward and one backward pass.
//
//   lab::SignalProbe probe(model.stack());  // observes the passes from here on
//   const Gradients g = backward(cross_entropy(model(inputs), labels));
//   optimizer.step(g);
//   const lab::LayerStats layers = probe.finish(g);
//
// The probe reads the passes of the training step itself. A training step without a probe measures nothing and has no
// extra cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/backward.h"
#include "autograd/jacobian.h"
#include "nn/blocks/stack.h"
#include "nn/gates/method.h"

namespace plumb::lab {

// Statistics of one branch of one block. A norm is the L2 norm over the tokens and channels of a sample. Norms,
// `ratio`, `cosine` and `change` are means over the samples of the batch. A mean square is the mean over all elements.
// Values that are not finite are kept unchanged.
struct BranchStats {
  std::int64_t block = 0;   // counted from the input; the first block is 0
  std::string branch = {};  // the name of the branch in its block: "attn", "mlp"
  nn::Norm norm = nn::Norm::pre;

  double stream_norm = 0;            // ||x||, where x is the stream before the residual sum
  double branch_norm = 0;            // ||g(x)||, where g(x) is the term that the gate adds to x: nn::Gate::added()
  double ratio = 0;                  // ||g(x)|| / ||x|| (Touvron et al. 2021, figure 2)
  double cosine = 0;                 // cosine between x and g(x); NaN if the gate adds nothing
  double mean_square = 0;            // mean square of the stream after branch, gate and post-norm
  double predicted_mean_square = 0;  // prediction for mean_square at init from the growth law (growth.h)
  // The mean, least and largest magnitude of the gate's factors for this stream, from nn::Gate::values(). The values
  // are absent if the gate has no factors.
  std::optional<double> gate_mean = {}, gate_min = {}, gate_max = {};
  // ||y - x|| / ||x||, where y is the stream after the residual sum and before a post-norm. The value includes the
  // effects of stochastic depth and of factors on the skip in this pass. If y = x + g(x), `change` equals `ratio` up to
  // rounding.
  double change = 0;

  double grad_norm = 0;  // L2 norm of the gradient of the loss by the branch's parameters
  // ||p_after - p_before|| / ||p_before|| over the parameters of the branch: the effect of the optimizer step. The
  // value is absent if no parameter changed.
  std::optional<double> update = {};

  // Values of branches of the types nn::Attention and nn::CrossAttention, over all heads and queries of the first 4
  // samples. The values are computed from the q and k of the pass, before any dropout. Padding is no key.
  std::optional<double> entropy = {};  // mean over the queries, in nats
  // The mean over the queries of entropy / ln(keys that the query may see); 1 for uniform attention; absent if there is
  // only one key.
  std::optional<double> relative_entropy = {};
  std::optional<double> largest_logit = {};  // largest q.k / sqrt(head_dim)

  // Values of attention with DropKey: the share of keys that this pass dropped, and the share of queries that lost all
  // keys (nn/layers/drop_key.h).
  std::optional<double> drop_ratio = {}, empty_rows = {};
};

// Layer statistics: the statistics of all branches and of the input of a stack.
struct LayerStats {
  nn::Growth growth = nn::Growth::linear;  // the growth law of the method
  Shape sample = {};                       // the shape of a sample of the input: [T, D], or [D, H, W] for feature maps
  double input_mean_square = 0;            // mean square of the input of the first block
  std::vector<BranchStats> branches = {};  // the branches of all blocks, in the order of the forward pass

  // The number of blocks.
  std::int64_t depth() const { return branches.empty() ? 0 : branches.back().block + 1; }
};

// Observes the forward passes of a stack while the probe exists. After several forward passes, the statistics describe
// the last pass.
class SignalProbe {
 public:
  // Copies the weights of the branches, to measure how a training step changes the weights.
  explicit SignalProbe(const nn::Stack& stack);
  SignalProbe(const SignalProbe&) = delete;
  SignalProbe& operator=(const SignalProbe&) = delete;

  // Returns the statistics of the last forward pass and its backward pass, whose result is `gradients`. If finish() is
  // called after optimizer.step(), the statistics include the update. Throws Error if no forward pass has run since the
  // construction.
  LayerStats finish(const Gradients& gradients) const;

 private:
  void see(const nn::JunctionPass& pass);
  void see_scores(BranchStats& row, const nn::AttentionPass& pass, bool causal);

  const nn::Stack& stack_;
  std::vector<std::vector<Tensor>> before_;  // copies of each branch's parameters
  std::vector<double> added_;                // mean square of the term that each branch adds
  std::vector<std::int64_t> keys_;           // number of keys of each attention branch; 0 for other branches
  LayerStats layers_;
  std::size_t seen_ = 0;         // number of residual sums observed
  std::vector<Handle> handles_;  // last member: destroyed first, so that no hook outlives the data
};

// Checks whether a fresh network follows the growth law of its method. The result has at most one warning, and is empty
// if the network follows the growth law. The warning names the first branch with a deviation: after this branch, the
// mean square of the stream is not finite, or is more than `law_tolerance` times larger or smaller than predicted.
// After a post-norm, the mean square must be within a factor of `norm_tolerance` of 1. A trained network need not
// follow the growth law. If the method states no growth law, only values that are not finite give a warning.
std::vector<std::string> warnings(const LayerStats& layers);
// The tolerances of warnings(). The measured deviations are smaller: with every registered method, at depths 12, 24 and
// 48 and with both base initialisations, the mean square stays within 0.85 to 1.3 times the prediction at width 64 (17
// tokens), and within 0.66 to 2 times the prediction at width 16 (5 tokens).
inline constexpr double law_tolerance = 3, norm_tolerance = 1.1;

// The mean squared singular value of the Jacobian of the stream, from the input of the first block to the output of the
// last block, without the final norm. The value is 1 if all blocks are the identity, or n^2 if the method also sums n
// streams at the end. The measurement uses evaluation mode and one Gaussian sample with the shape and the
// input_mean_square of `layers`. `inputs` are the further inputs of the branches for one sample.
Estimate jacobian(nn::Stack& stack, const LayerStats& layers, const JacobianOptions& options = {},
                  const nn::StackInputs& inputs = {});

}  // namespace plumb::lab
