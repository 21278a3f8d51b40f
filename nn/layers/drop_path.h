// Stochastic depth (Huang et al. 2016): in training, drops a branch for whole samples.
#pragma once

#include "core/enum_names.h"
#include "nn/module.h"

namespace plumb::nn {

// The place of the factor that makes training and evaluation agree in expectation:
// - rescaled: in training, a kept branch is multiplied by 1 / (1 - rate), as in timm, DeiT and CaiT;
// - original: in evaluation, every branch is multiplied by 1 - rate, as in the paper.
// DeepMind's NF-ResNets have neither factor, so training and evaluation of these networks do not agree in expectation.
enum class DropPathForm { rescaled, original };
constexpr auto names_of(DropPathForm) { return std::array{"rescaled", "original"}; }

// Maps x [B, ..] to the same shape. In training, each sample is set to 0 with probability `rate`, which is in [0, 1);
// `form` defines the factor of all other samples. Two DropPath layers in one block need different `branch` numbers, so
// that their draws differ. The draws also depend on the seed, the step and the module path, and are the same for both
// forms. The rate is rounded to the 16 bits of a draw. A rate below 2^-17 drops no sample. The constructor throws Error
// for a rate above 1 - 2^-16.
class DropPath : public Layer {
 public:
  explicit DropPath(double rate, std::uint32_t branch = 0, DropPathForm form = DropPathForm::rescaled);

  double rate() const { return rate_; }
  DropPathForm form() const { return form_; }
  // Returns the factors [B] of the samples in this step. The result is undefined if all factors are 1 (rate 0, or
  // `rescaled` in evaluation). Throws Error in training if the rate is above 0 and no RandomScope is open. dtype,
  // device and B are those of `like`.
  Tensor row_scale(const Tensor& like) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double rate_;
  std::uint32_t branch_;
  DropPathForm form_;
};

}  // namespace plumb::nn
