// Normalisation over the last axis.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Layer norm (Ba et al. 2016): weight [dim] starts at 1, bias [dim] at 0.
class LayerNorm : public Layer {
 public:
  explicit LayerNorm(std::int64_t dim, double eps = 1e-6);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double eps_;
  Tensor weight_, bias_;
};

// RMS norm (Zhang, Sennrich 2019): weight [dim] starts at 1.
class RmsNorm : public Layer {
 public:
  explicit RmsNorm(std::int64_t dim, double eps = 1e-6);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double eps_;
  Tensor weight_;
};

}  // namespace plumb::nn
