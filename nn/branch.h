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
  // activation [B, T, hidden] in an MLP.
  virtual Tensor projected(const Tensor& u) const { return u; }
  // Changes the input of the last linear layer: [B, T, D] in attention, [B, T, hidden] in an MLP.
  virtual Tensor hidden(const Tensor& h) const { return h; }
};
// The former name of BranchHooks.
using Inside [[deprecated("BranchHooks")]] = BranchHooks;

// The residual sum after a branch: skip + row_scale * gate * f, as in gated_residual().
struct ResidualAdd {
  Tensor skip, gate, row_scale;
  Path path;  // the module path of the gate, for messages
};

// The hooks inside a branch, and the operations around the branch that the branch may fuse with its own operations.
// Each field is optional.
struct BranchCall {
  const BranchHooks* hooks = nullptr;
  const Layer* norm = nullptr;  // the norm before the branch
  const ResidualAdd* add = nullptr;
  Tensor* value = nullptr;  // receives the value of the branch, detached, for an observer; used only with `add`
};

// Base class of the branches of a block. A derived branch implements forward() with enter() and leave().
class Branch : public Layer {
 public:
  using Layer::Layer;
  virtual const char* kind() const = 0;  // "attn" or "mlp"
  virtual Linear& first() = 0;           // the first linear layer: qkv or fc1
  virtual Linear& last() = 0;            // the last linear layer: proj or fc2
  // Multiplies the declared init of the weights on the path of the values by `factor`: W_v and W_o in attention, fc1
  // and fc2 in an MLP. W_q and W_k do not change.
  virtual void scale_value_path(double factor) = 0;

  using Layer::operator();
  // Computes the branch, with the norm and the residual sum that `call` contains. The input and output of a module hook
  // on the branch do not include the norm and the residual sum.
  Tensor operator()(const Tensor& x, const BranchCall& call) const;

 protected:
  // forward() must begin with enter() or enter_gelu(), and end with leave(). These functions add the norm and the
  // residual sum. enter() computes the norm and the first product. If `bf16_result` is true and products run in bf16,
  // the result may be bf16; the next op of the branch must accept bf16.
  Tensor enter(const Linear& first, const Tensor& x, bool bf16_result = false) const;
  // Computes enter(), followed by GELU.
  Tensor enter_gelu(const Linear& first, const Tensor& x, Gelu form) const;
  // Computes the last product and the residual sum. If `after` is given (dropout), `after` is applied between the
  // product and the sum.
  Tensor leave(const Linear& last, const Tensor& h, const Layer* after = nullptr) const;

 private:
  Tensor join(const BranchCall& call, const Tensor& f) const;  // computes only the residual sum

  mutable const BranchCall* call_ = nullptr;  // not null during a call
  mutable bool entered_ = false, left_ = false;
};

}  // namespace plumb::nn
