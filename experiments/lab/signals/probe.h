// The signal passport of a stack of residual blocks: what one forward and one backward pass tell about signals and
// gradients in it.
//
//   lab::SignalProbe probe(model.stack());  // watches from here on
//   const Gradients g = backward(cross_entropy(model(batch.images), batch.labels));
//   optimizer.step(g);
//   const lab::LayerStats passport = probe.finish(g);
//
// It reads the passes of the training step itself. Where no probe lives nothing is measured and nothing is paid.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "autograd/backward.h"
#include "autograd/jacobian.h"
#include "nn/stack.h"

namespace plumb::lab {

// One branch of one block. A norm is L2 over a sample's tokens and channels, and it, the ratio and the cosine are means
// over the samples of the batch. A mean square is over all elements. What is not finite stays so.
struct BranchStats {
  std::int64_t block = 0;   // 0 is next to the input
  std::string branch = {};  // "attn" or "mlp"
  nn::Norm norm = nn::Norm::pre;

  double stream_norm = 0;            // ||x||, of what enters the junction
  double branch_norm = 0;            // ||g(x)||, of what the gate adds to it: nn::Gate::added()
  double ratio = 0;                  // ||g(x)|| / ||x|| (Touvron et al. 2021, figure 2)
  double cosine = 0;                 // between x and g(x); NaN where a gate adds nothing
  double mean_square = 0;            // of the stream after the branch, its post-norm included
  double predicted_mean_square = 0;  // of the same at init, by the method's law (growth.h)
  // Magnitudes of the factors with which the gate acts on this stream, nn::Gate::values(); absent without any.
  std::optional<double> gate_mean = {}, gate_min = {}, gate_max = {};
  // ||y - x|| / ||x||, y what leaves the junction before a post-norm in this very pass, stochastic depth and factors of
  // the skip included. Equals the ratio where y = x + g(x), but for the rounding of x.
  double change = 0;

  double grad_norm = 0;  // of the loss by the branch's own weights and biases
  std::optional<double> update =
      {};  // ||p_after - p_before|| / ||p_before|| over these: what the optimizer's step did; absent without one

  // Attention alone, of nn::Attention, over heads and queries of the first 4 samples, from the pass's own q and k,
  // before dropping of any kind.
  std::optional<double> entropy = {};           // mean, in nats
  std::optional<double> relative_entropy = {};  // the same / ln T: 1 is uniform
  std::optional<double> largest_logit = {};     // largest q.k / sqrt(head_dim)

  // Of nn::Attention under DropKey: the share of keys that this pass dropped, and of queries that lost all
  // (nn/drop_key.h).
  std::optional<double> drop_ratio = {}, empty_rows = {};
};

struct LayerStats {
  nn::Growth growth = nn::Growth::linear;  // the method's law
  std::int64_t tokens = 0, dim = 0;
  double input_mean_square = 0;            // of what enters the first block
  std::vector<BranchStats> branches = {};  // attention and MLP of each block, in order
};

// Watches the stack's passes while it lives. Of several forward passes the last one counts.
class SignalProbe {
 public:
  // Keeps a copy of the branches' weights, to see what a step does to them.
  explicit SignalProbe(const nn::Stack& stack);
  SignalProbe(const SignalProbe&) = delete;
  SignalProbe& operator=(const SignalProbe&) = delete;

  // The passport of the last forward pass, with the gradients of its backward pass and, called after optimizer.step,
  // the update. Throws if no forward pass happened since the construction.
  LayerStats finish(const Gradients& gradients) const;

 private:
  void see(const nn::Junction& junction);
  void see_queries_and_keys(BranchStats& row, const Tensor& qkv, std::int64_t heads);

  const nn::Stack& stack_;
  std::vector<std::vector<Tensor>> before_;  // copies of each branch's parameters
  std::vector<double> added_;                // mean square of what each branch adds
  LayerStats passport_;
  std::size_t seen_ = 0;         // junctions
  std::vector<Handle> handles_;  // last: nothing is watched once the rest goes
};

// Names of before, for one version.
using Passport [[deprecated("LayerStats")]] = LayerStats;
using BranchPassport [[deprecated("BranchStats")]] = BranchStats;
using PassportProbe [[deprecated("SignalProbe")]] = SignalProbe;

// Where a fresh network does not do what its method says: one line a finding, empty where all is well. The first branch
// is named after which the stream's mean square is not finite, is more than `law_tolerance` times away from the
// prediction, or, after a post-norm, more than `norm_tolerance` times away from 1. A network that has been trained is
// free to leave the law, and one whose method states none is only looked at for numbers that are not finite.
std::vector<std::string> warnings(const LayerStats& passport);
// All registered methods, at depths 12, 24 and 48 under either base init, stay within 0.85 to 1.3 times their law at
// width 64 (17 tokens) and within 0.66 to 2 times at width 16 (5 tokens).
inline constexpr double law_tolerance = 3, norm_tolerance = 1.1;

// Mean squared singular value of the Jacobian of the stream's way from the first block to behind the last, without the
// final norm: 1 for blocks that are the identity (n^2 for a method that ends by summing n streams). At one Gaussian
// sample [1, T, D] of the passport's input_mean_square, in evaluation mode.
JacobianMeasure jacobian(nn::Stack& stack, const LayerStats& passport, const JacobianOptions& options = {});

}  // namespace plumb::lab
