// A residual branch: what a block adds to its stream. Attention and Mlp are branches.
#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

// What a residual method does inside a branch, at the three places where papers put something. A branch that has none
// takes its fused path.
class Inside {
 public:
  virtual ~Inside() = default;
  // Before the first linear, after the norm: [B, T, D].
  virtual Tensor input(const Tensor& x) const { return x; }
  // After the first linear: q, k, v packed [B, T, 3D], or what the activation gets [B, T, 4D].
  virtual Tensor projected(const Tensor& u) const { return u; }
  // Before the last linear: [B, T, D] or [B, T, 4D].
  virtual Tensor hidden(const Tensor& h) const { return h; }
};

// Where a branch stands in its block: what it shares its first and last product with. All of it may be missing.
struct Place {
  const Inside* inside = nullptr;  // what the method does inside
  const Layer* norm = nullptr;     // before the branch
  struct Junction {                // after it: skip + row_scale gate f, as gated_residual() has it
    Tensor skip, gate, row_scale;
    Path path;  // of the gate, for messages
  };
  const Junction* junction = nullptr;
  Tensor* value = nullptr;  // where there is a junction: gets f, without a graph, for who watches
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
  // The branch in its place: norm, branch and junction. Hooks on the branch see it without norm and junction.
  Tensor operator()(const Tensor& x, const Place& place) const;

 protected:
  // For forward(), which must begin with the one and end with the other.
  // Norm and first product; bf16_result: in a bf16 run, as the branch goes on with an op that takes it.
  Tensor enter(const Linear& first, const Tensor& x, bool bf16_result = false) const;
  Tensor enter_gelu(const Linear& first, const Tensor& x, Gelu form) const;  // with the activation
  // Last product and junction; between them `after`, if there is one: dropout.
  Tensor leave(const Linear& last, const Tensor& h, const Layer* after = nullptr) const;

 private:
  Tensor join(const Place& place, const Tensor& f) const;  // the junction by itself

  mutable const Place* place_ = nullptr;  // during a call
  mutable bool entered_ = false, left_ = false;
};

}  // namespace plumb::nn
