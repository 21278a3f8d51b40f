// Stochastic depth (Huang et al. 2016): in training, drops a branch for whole samples.
#pragma once

#include "nn/module.h"

namespace plumb::nn {

// The factor that makes training and evaluation agree in expectation.
//   rescaled  in training, a kept branch is multiplied by 1 / (1 - rate); in evaluation nothing is (timm, DeiT, CaiT)
//   original  in training, nothing is multiplied; in evaluation, every branch is multiplied by 1 - rate (the paper)
// DeepMind's NF-ResNets have neither factor, so training and evaluation do not agree there.
enum class DropPathForm { rescaled, original };
const char* name(DropPathForm form);
// The names of the forms: rescaled, original.
const std::vector<std::string>& drop_path_form_names();
// The form of a name. Throws Error for another name.
DropPathForm drop_path_form_named(const std::string& name);

// Maps x [B, ..] to the same shape. In training, each sample is set to 0 with probability `rate`, which is in [0, 1),
// and is otherwise multiplied as the form says. Two of these layers in one block need different `branch` numbers, so
// that their draws differ. The draws also depend on seed, step and module path, and are the same for both forms. The
// rate is rounded to the 16 bits of a draw: below 2^-17 nothing is dropped; the constructor throws Error above 1 -
// 2^-16.
class DropPath : public Layer {
 public:
  explicit DropPath(double rate, std::uint32_t branch = 0, DropPathForm form = DropPathForm::rescaled);

  // The rate and the form.
  double rate() const { return rate_; }
  DropPathForm form() const { return form_; }
  // Returns the factors [B] of the samples in this step; undefined if all are 1 (rate 0, or rescaled in evaluation).
  // Throws Error in training if the rate is above 0 and no RandomScope is open. dtype, device and B are those of
  // `like`.
  Tensor row_scale(const Tensor& like) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  double rate_;
  std::uint32_t branch_;
  DropPathForm form_;
};

}  // namespace plumb::nn
