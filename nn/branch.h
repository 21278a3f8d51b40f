// A residual branch: what a block adds to its stream. Attention and Mlp are branches.
#pragma once

#include "nn/layers/linear.h"

namespace plumb::nn {

// What a residual method does inside a branch, at the three places where papers put something. A branch that has none takes its
// fused path.
class Inside {
 public:
  virtual ~Inside() = default;
  virtual Tensor input(const Tensor& x) const { return x; }       // before the first linear, after the norm [B, T, D]
  virtual Tensor activation(const Tensor& u) const { return u; }  // before the activation [B, T, 4D]; Mlp only
  virtual Tensor hidden(const Tensor& h) const { return h; }      // before the last linear [B, T, D] or [B, T, 4D]
};

class Branch : public Layer {
 public:
  using Layer::Layer;
  virtual const char* kind() const = 0;  // "attn" or "mlp"
  virtual Linear& first() = 0;           // qkv or fc1
  virtual Linear& last() = 0;            // proj or fc2
  void set_inside(const Inside* inside) { inside_ = inside; }

 protected:
  const Inside* inside_ = nullptr;  // owned by the gate
};

}  // namespace plumb::nn
