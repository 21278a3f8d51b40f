#pragma once

#include "core/backend.h"
#include "nn/branch.h"
#include "nn/layers/drop_path.h"

namespace plumb::nn {

struct MlpOptions {
  std::int64_t dim, hidden;
  Gelu gelu = Gelu::erf;
  Init init = Init::truncated_normal(0.02);  // of both weights
  double drop = 0;                           // dropout after the activation and after fc2, while training; as dropout() takes it
};

// x [.., dim] -> fc2(gelu(fc1(x))) [.., dim].
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
