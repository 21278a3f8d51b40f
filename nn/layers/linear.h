#pragma once

#include "core/backend.h"
#include "nn/module.h"

namespace plumb::nn {

struct LinearOptions {
  std::int64_t in, out;
  bool bias = true;
  Init init = Init::truncated_normal(0.02);  // of the weight
  Init bias_init = Init::constant(0);
  Role role = Role::weight;  // of the weight: whether it decays. The bias is Role::bias.
};

// x [.., in] -> x weight^T + bias [.., out]; weight [out, in], bias [out].
class Linear : public Layer {
 public:
  explicit Linear(const LinearOptions& options);

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined without one
  Init& weight_init() { return own("weight").init; }
  void scale_init(double factor) { weight_init() = weight_init().scaled(factor); }

  // The layer with its neighbours, fused into one op where nobody has hooked one of them and a norm is a LayerNorm. The
  // values are the same, gradients are up to rounding. bf16_result: as the ops take it.
  Tensor after(const Layer* norm, const Tensor& x, bool bf16_result = false) const;  // (*this)(norm(x)); null: no norm
  Tensor gelu_after(const Layer* norm, const Tensor& x, Gelu form, bool bf16_result = false) const;  // gelu of it
  // gated_residual(skip, (*this)(x), gate, row_scale)
  Tensor joined(const Tensor& skip, const Tensor& x, const Tensor& gate, const Tensor& row_scale) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
