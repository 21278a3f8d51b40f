// The MLP of a transformer block.
#pragma once

#include "core/backend.h"
#include "nn/branch.h"
#include "nn/layers/dropout.h"

namespace plumb::nn {

// Options of an Mlp.
struct MlpOptions {
  std::int64_t dim, hidden;
  Gelu gelu = Gelu::erf;
  Init init = Init::truncated_normal(0.02);  // the init of both weights
  double drop = 0;  // probability of dropout after the activation and after fc2, with the bounds of dropout()
};

// Returns the hidden width round(mlp_ratio dim). (timm truncates instead of rounding.) Throws Error for a width below 1
// or above 2^40. The message begins with `op`.
std::int64_t mlp_hidden(const char* op, double mlp_ratio, std::int64_t dim);

// Maps x [.., dim] to fc2(gelu(fc1(x))) [.., dim].
class Mlp : public Branch {
 public:
  explicit Mlp(const MlpOptions& options);

  const char* kind() const override { return "mlp"; }
  Linear& first() override { return fc1_; }
  Linear& last() override { return fc2_; }
  void scale_value_path(double factor) override;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Gelu gelu_;
  Linear fc1_, fc2_;
  std::unique_ptr<Dropout> drop1_, drop2_;  // null without dropout
};

}  // namespace plumb::nn
