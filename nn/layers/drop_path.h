// Stochastic depth (Huang et al. 2016): drops a branch for whole samples while training.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// Where the factor goes that makes training and evaluation agree in expectation.
//   rescaled  a kept branch times 1 / (1 - rate) in training, the identity in evaluation (timm, DeiT, CaiT)
//   original  the paper's: nothing in training, every branch times 1 - rate in evaluation
// DeepMind's NF-ResNets rescale neither time, and so do not agree.
enum class DropPathForm { rescaled, original };
const char* name(DropPathForm form);
const std::vector<std::string>& drop_path_form_names();      // rescaled, original
DropPathForm drop_path_form_named(const std::string& name);  // throws for another

// x [B, ..]: in training each sample is 0 with probability `rate` in [0, 1), else as the form says. Two of them in one
// block pass different `branch` numbers, so that they draw apart (the draws also depend on seed, step and path). Both
// forms draw the same. The rate is rounded to the 16 bits of a draw: one below 2^-17 drops nothing, one above 1 - 2^-16
// is refused.
class DropPath : public Layer {
 public:
  explicit DropPath(double rate, std::uint32_t branch = 0, DropPathForm form = DropPathForm::rescaled);

  double rate() const { return rate_; }
  DropPathForm form() const { return form_; }
  // The factors [B] of this step's samples; undefined where all are 1 (rate 0, rescaled in evaluation). Throws for a
  // rate above 0 in training without an open RandomScope.
  Tensor row_scale(const Tensor& like) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double rate_;
  std::uint32_t branch_;
  DropPathForm form_;
};

}  // namespace plumb::nn
