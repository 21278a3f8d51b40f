// A residual branch: what a block adds to its stream. Attention and Mlp are branches.
#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

// What a residual method changes inside a branch, at the three points where papers put something. A branch without
// hooks takes its fused path.
class BranchHooks {
 public:
  virtual ~BranchHooks() = default;
  // Before the first linear, after the norm: [B, T, D].
  virtual Tensor input(const Tensor& x) const { return x; }
  // After the first linear: q, k and v packed as [B, T, 3D] in attention, the activation's input [B, T, 4D] in an MLP.
  virtual Tensor projected(const Tensor& u) const { return u; }
  // Before the last linear: [B, T, D] or [B, T, 4D].
  virtual Tensor hidden(const Tensor& h) const { return h; }
};
using Inside [[deprecated("BranchHooks")]] = BranchHooks;

// The sum after a branch: skip + row_scale gate f, as in gated_residual().
struct ResidualAdd {
  Tensor skip, gate, row_scale;
  Path path;  // the gate's, for messages
};

// The neighbours that a branch may fuse with, and the hooks inside it. Each of them is optional.
struct BranchCall {
  const BranchHooks* hooks = nullptr;
  const Layer* norm = nullptr;  // before the branch
  const ResidualAdd* add = nullptr;
  Tensor* value = nullptr;  // with `add`: receives f, detached, if an observer is attached
};

class Branch : public Layer {
 public:
  using Layer::Layer;
  virtual const char* kind() const = 0;  // "attn" or "mlp"
  virtual Linear& first() = 0;           // qkv or fc1
  virtual Linear& last() = 0;            // proj or fc2
  // Multiplies the declared init of the weights that the values pass through: W_v and W_o, or fc1 and fc2. W_q and W_k
  // stay.
  virtual void scale_value_path(double factor) = 0;

  using Layer::operator();
  // Norm, branch and residual sum. A module hook on the branch sees the branch alone.
  Tensor operator()(const Tensor& x, const BranchCall& call) const;

 protected:
  // For forward(), which must begin with the one and end with the other.
  // Norm and first product; bf16_result: in a bf16 run, as the branch goes on with an op that takes it.
  Tensor enter(const Linear& first, const Tensor& x, bool bf16_result = false) const;
  Tensor enter_gelu(const Linear& first, const Tensor& x, Gelu form) const;  // with the activation
  // Last product and junction; between them `after`, if there is one: dropout.
  Tensor leave(const Linear& last, const Tensor& h, const Layer* after = nullptr) const;

 private:
  Tensor join(const BranchCall& call, const Tensor& f) const;  // the residual sum by itself

  mutable const BranchCall* call_ = nullptr;  // during a call
  mutable bool entered_ = false, left_ = false;
};

}  // namespace plumb::nn
