// A residual branch: the part of a block whose value is added to the stream. Attention and Mlp are branches.
#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

// The points inside a branch where a residual method can change the computation. A branch without hooks uses its fused
// path.
class BranchHooks {
 public:
  virtual ~BranchHooks() = default;
  // Changes the input of the first linear layer, after the norm: [B, T, D].
  virtual Tensor input(const Tensor& x) const { return x; }
  // Changes the output of the first linear layer: q, k and v packed as [B, T, 3D] in attention, the input of the
  // activation [B, T, 4D] in an MLP.
  virtual Tensor projected(const Tensor& u) const { return u; }
  // Changes the input of the last linear layer: [B, T, D] in attention, [B, T, 4D] in an MLP.
  virtual Tensor hidden(const Tensor& h) const { return h; }
};
// The former name of BranchHooks.
using Inside [[deprecated("BranchHooks")]] = BranchHooks;

// The residual sum after a branch: skip + row_scale * gate * f, as in gated_residual().
struct ResidualAdd {
  Tensor skip, gate, row_scale;
  Path path;  // module path of the gate, for messages
};

// The operations around a branch that it may fuse with its own, and the hooks inside it. Each is optional.
struct BranchCall {
  const BranchHooks* hooks = nullptr;
  const Layer* norm = nullptr;  // the norm before the branch
  const ResidualAdd* add = nullptr;
  Tensor* value = nullptr;  // used only with `add`: receives f, detached; set if an observer is attached
};

// Base class of the branches of a block. A derived branch implements forward() with enter() and leave().
class Branch : public Layer {
 public:
  using Layer::Layer;
  virtual const char* kind() const = 0;  // "attn" or "mlp"
  virtual Linear& first() = 0;           // the first linear layer: qkv or fc1
  virtual Linear& last() = 0;            // the last linear layer: proj or fc2
  // Multiplies the declared init of the weights on the path of the values: W_v and W_o, or fc1 and fc2. W_q and W_k do
  // not change.
  virtual void scale_value_path(double factor) = 0;

  using Layer::operator();
  // Computes norm, branch and residual sum, as `call` asks for. A module hook on the branch sees only the branch,
  // without norm and sum.
  Tensor operator()(const Tensor& x, const BranchCall& call) const;

 protected:
  // forward() must begin with enter() or enter_gelu(), and end with leave(): they add the norm and the residual sum.
  // enter(): the norm and the first product. bf16_result: with products in bf16, the result may be bf16, because the
  // next op of the branch accepts it.
  Tensor enter(const Linear& first, const Tensor& x, bool bf16_result = false) const;
  // enter(), followed by GELU.
  Tensor enter_gelu(const Linear& first, const Tensor& x, Gelu form) const;
  // The last product and the residual sum. If `after` is given, it is applied between them; it is the dropout.
  Tensor leave(const Linear& last, const Tensor& h, const Layer* after = nullptr) const;

 private:
  Tensor join(const BranchCall& call, const Tensor& f) const;  // only the residual sum

  mutable const BranchCall* call_ = nullptr;  // set during a call
  mutable bool entered_ = false, left_ = false;
};

}  // namespace plumb::nn
