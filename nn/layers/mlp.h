// The MLP of a transformer block.
#pragma once

#include "nn/layers/branch.h"
#include "nn/layers/dropout.h"

namespace plumb::nn {

// The activation between the two layers of an Mlp: GELU by erf (ViT, DeiT) or by the tanh approximation, or ReLU
// (Vaswani et al. 2017, DETR).
enum class Activation { gelu, gelu_tanh, relu };

// Options of an Mlp.
struct MlpOptions {
  std::int64_t dim = 0, hidden = 0;
  Activation activation = Activation::gelu;
  Init init = Init::truncated_normal(0.02);  // the init of both weights
  double drop = 0;  // probability of dropout after the activation and after fc2, with the bounds of dropout()
};

// Returns the hidden width round(mlp_ratio dim). (timm truncates instead of rounding.) Throws Error for a width below 1
// or above 2^40. The message begins with `op`.
std::int64_t mlp_hidden(const char* op, double mlp_ratio, std::int64_t dim);

// Maps x [.., dim] to fc2(activation(fc1(x))) [.., dim].
class Mlp : public Branch {
 public:
  using Options = MlpOptions;  // the options of the constructor, for nn::Child
  explicit Mlp(const MlpOptions& options);

 protected:
  Tensor forward(BranchCall& call) const override;

 private:
  Activation activation_;
  Child<Linear> fc1_, fc2_;
  ChildPtr<Dropout> drop1_, drop2_;  // null without dropout
};

// Returns the choice of an Mlp for a junction, under the name "mlp". The block sets dim and init.
BranchChoice mlp(const MlpOptions& options);

}  // namespace plumb::nn
