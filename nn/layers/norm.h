// Layers that normalise over the last axis, and DyT, which replaces norms.
#pragma once

#include "autograd/ops.h"
#include "nn/module.h"

namespace plumb::nn {

// Layer norm (Ba et al. 2016) over the last axis, of width dim. weight [dim] has the initial value 1, bias [dim] the
// initial value 0.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(std::int64_t dim, double eps = 1e-6);

  // The parameters.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  double eps() const { return eps_; }

 protected:
  Tensor forward(const Tensor& x) const final;

 private:
  double eps_;
  Tensor weight_, bias_;
};

// RMS norm (Zhang, Sennrich 2019) over the last axis, of width dim. weight [dim] has the initial value 1.
class RmsNorm : public Layer {
 public:
  explicit RmsNorm(std::int64_t dim, double eps = 1e-6);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double eps_;
  Tensor weight_;
};

// DyT (Zhu et al. 2025), a replacement for norms: weight tanh(alpha x) + bias. The initial values are `alpha` for alpha
// [1], 1 for weight [dim] and 0 for bias [dim]. Weight decay does not apply to these parameters.
class DyT : public Layer {
 public:
  explicit DyT(std::int64_t dim, double alpha = 0.5);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor alpha_, weight_, bias_;
};

}  // namespace plumb::nn
