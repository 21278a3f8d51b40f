// Measures the signal passport of a stack of residual blocks: statistics of the signals and gradients at every branch,
// from one forward and one backward pass.
//
//   lab::SignalProbe probe(model.stack());  // observes the passes from here on
//   const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
//   optimizer.step(g);
//   const lab::LayerStats passport = probe.finish(g);
//
// The probe reads the passes of the training step itself. Without a probe there is no measurement and no cost.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/backward.h"
#include "autograd/jacobian.h"
#include "nn/stack.h"

namespace plumb::lab {

// Statistics of one branch of one block. A norm is the L2 norm over the tokens and channels of a sample. Norms, the
// ratio and the cosine are means over the samples of the batch. A mean square is taken over all elements. Values that
// are not finite are kept as they are.
struct BranchStats {
  std::int64_t block = 0;   // block 0 is next to the input
  std::string branch = {};  // "attn" or "mlp"
  nn::Norm norm = nn::Norm::pre;

  double stream_norm = 0;            // ||x||, where x is the stream before the residual sum
  double branch_norm = 0;            // ||g(x)||, where g(x) is the term that the gate adds to x: nn::Gate::added()
  double ratio = 0;                  // ||g(x)|| / ||x|| (Touvron et al. 2021, figure 2)
  double cosine = 0;                 // between x and g(x); NaN if the gate adds nothing
  double mean_square = 0;            // of the stream after the branch and its post-norm, if any
  double predicted_mean_square = 0;  // predicted mean_square at init, by the method's growth law (growth.h)
  // Magnitudes of the gate's factors for this stream, from nn::Gate::values(). Absent if the gate has no factors.
  std::optional<double> gate_mean = {}, gate_min = {}, gate_max = {};
  // ||y - x|| / ||x||, where y is the stream after the residual sum and before a post-norm. Includes the effects of
  // stochastic depth and of factors on the skip in this pass. Equals the ratio, up to rounding, if y = x + g(x).
  double change = 0;

  double grad_norm = 0;  // L2 norm of the loss's gradient by the branch's parameters
  // ||p_after - p_before|| / ||p_before|| over these parameters: the effect of the optimizer's step. Absent if no
  // parameter changed.
  std::optional<double> update = {};

  // Only for branches of type nn::Attention: over all heads and queries of the first 4 samples, from the pass's own q
  // and k, before any dropout.
  std::optional<double> entropy = {};           // mean, in nats
  std::optional<double> relative_entropy = {};  // entropy / ln T; 1 for uniform attention; absent if T = 1
  std::optional<double> largest_logit = {};     // largest q.k / sqrt(head_dim)

  // Only for nn::Attention with DropKey: the share of keys that this pass dropped, and the share of queries that lost
  // all keys (nn/drop_key.h).
  std::optional<double> drop_ratio = {}, empty_rows = {};
};

// The signal passport: statistics of all branches, and of the stack's input.
struct LayerStats {
  nn::Growth growth = nn::Growth::linear;  // the growth law of the method
  std::int64_t tokens = 0, dim = 0;
  double input_mean_square = 0;            // of the input of the first block
  std::vector<BranchStats> branches = {};  // attention and MLP of each block, in order
};

// Observes the forward passes of a stack while it exists. If there are several forward passes, the last one counts.
class SignalProbe {
 public:
  // Copies the branches' weights, to measure how a training step changes them.
  explicit SignalProbe(const nn::Stack& stack);
  SignalProbe(const SignalProbe&) = delete;
  SignalProbe& operator=(const SignalProbe&) = delete;

  // Returns the passport of the last forward pass, with the gradients of its backward pass. If it is called after
  // optimizer.step(), the passport includes the update. Throws Error if there was no forward pass since the
  // construction.
  LayerStats finish(const Gradients& gradients) const;

 private:
  void see(const nn::Junction& junction);
  void see_queries_and_keys(BranchStats& row, const Tensor& qkv, std::int64_t heads);

  const nn::Stack& stack_;
  std::vector<std::vector<Tensor>> before_;  // copies of each branch's parameters
  std::vector<double> added_;                // mean square of what each branch adds
  LayerStats passport_;
  std::size_t seen_ = 0;         // number of residual sums observed
  std::vector<Handle> handles_;  // last member: destroyed first, so that no hook outlives the data
};

// Former names; they will be removed after one version.
using Passport [[deprecated("LayerStats")]] = LayerStats;
using BranchPassport [[deprecated("BranchStats")]] = BranchStats;
using PassportProbe [[deprecated("SignalProbe")]] = SignalProbe;

// Warnings if a fresh network does not follow the growth law of its method; empty if all is well. At most one warning:
// it names the first branch after which the mean square of the stream is not finite, is more than `law_tolerance` times
// larger or smaller than predicted, or, after a post-norm, is more than `norm_tolerance` times larger or smaller than
// 1. A trained network need not follow the law. If the method states no law, only non-finite values give a warning.
std::vector<std::string> warnings(const LayerStats& passport);
// The tolerances of warnings(). With every registered method, at depths 12, 24 and 48 and with both base
// initialisations, the mean square stays within 0.85 to 1.3 times the prediction at width 64 (17 tokens), and within
// 0.66 to 2 times at width 16 (5 tokens).
inline constexpr double law_tolerance = 3, norm_tolerance = 1.1;

// The mean squared singular value of the Jacobian of the stream, from the input of the first block to the output of the
// last, without the final norm. It is 1 if all blocks are the identity (n^2 for a method that sums n streams at the
// end). Measured in evaluation mode at one Gaussian sample [1, T, D] with the passport's input_mean_square.
JacobianMeasure jacobian(nn::Stack& stack, const LayerStats& passport, const JacobianOptions& options = {});

}  // namespace plumb::lab
