// Stochastic depth (Huang et al. 2016): drops a branch for whole samples while training.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// x [B, ..]: each sample is 0 with probability `rate`, else x / (1 - rate); the identity in evaluation. Two of them in one block pass
// different `branch` numbers, so that they draw apart (the draws also depend on seed, step and path).
class DropPath : public Layer {
 public:
  explicit DropPath(double rate, std::uint32_t branch = 0);

  double rate() const { return rate_; }
  // The factors [B] of this step's samples; undefined when nothing is dropped (evaluation, rate 0).
  Tensor row_scale(const Tensor& like) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double rate_;
  std::uint32_t branch_;
};

// Zero with probability p, else x / (1 - p), per element; the identity in evaluation.
class Dropout : public Layer {
 public:
  explicit Dropout(double p);

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double p_;
};

}  // namespace plumb::nn
