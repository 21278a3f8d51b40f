// Base classes that several gates of the table share.
#pragma once

#include "nn/gates/gate.h"

namespace plumb::nn {

// The gate y = skip + alpha * branch. alpha [1] is learned, with the initial value `init`.
class AlphaGate : public ScaleGate {
 public:
  explicit AlphaGate(double init) { scale_ = parameter("alpha", {1}, Init::constant(init), Role::gate); }
};

// The gate y = scale * skip + branch. `scale` is [1], [D] with one number per channel, or undefined for a plain sum.
class SkipScaleGate : public Gate {
 public:
  explicit SkipScaleGate(Tensor scale = {}, Layout layout = Layout::tokens)
      : scale_(std::move(scale)), layout_(layout) {}
  Tensor combine(const Tensor& skip, const Tensor& branch) const override {
    return gated_residual(branch, skip, scale());
  }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(scale_.defined() ? skip * scale() : skip, branch, {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return branch; }
  Tensors scales() const override { return scale_.defined() ? Tensors{scale_} : Tensors(); }

 protected:
  // Returns the scale in the shape that broadcasts over the stream.
  Tensor scale() const { return per_channel(scale_, layout_); }
  Tensor scale_;
  Layout layout_;
};

// The gate y = skip + after(branch), for methods that compute something between the branch and the sum, such as a norm.
// A derived gate must override after(), which maps [B, T, D] to [B, T, D].
class AfterGate : public Gate {
 public:
  // Returns the term that is added to the skip.
  virtual Tensor after(const Tensor& branch) const = 0;
  Tensor combine(const Tensor& skip, const Tensor& branch) const override { return skip + after(branch); }
  Tensor combine_scaled(const Tensor& skip, const Tensor& branch, const Tensor& row_scale) const override {
    return gated_residual(skip, after(branch), {}, row_scale);
  }
  Tensor added(const Tensor&, const Tensor& branch) const override { return after(branch); }
};

}  // namespace plumb::nn
