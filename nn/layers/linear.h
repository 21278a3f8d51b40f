// A fully connected layer.
#pragma once

#include "core/backend.h"
#include "nn/module.h"

namespace plumb::nn {

// Options of a Linear.
struct LinearOptions {
  std::int64_t in, out;
  bool bias = true;
  Init init = Init::truncated_normal(0.02);  // the init of the weight
  Init bias_init = Init::constant(0);
  // The role of the weight, which decides whether weight decay applies; the bias has Role::bias.
  Role role = Role::weight;
};

// Maps x [.., in] to x weight^T + bias [.., out]. Parameters: weight [out, in], bias [out]. The constructor throws
// Error for extents below 1.
class Linear : public Layer {
 public:
  explicit Linear(const LinearOptions& options);

  // The parameters, and the declared init of the weight. bias() is undefined if the layer has no bias. scale_init()
  // multiplies the declared init of the weight by a factor.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }
  Init& weight_init() { return own("weight").init; }
  void scale_init(double factor) { weight_init() = weight_init().scaled(factor); }

  // The functions below compute the layer together with neighbouring operations. If no layer has hooks and the norm is
  // a LayerNorm, the operations are fused into one op. Fused and separate ops give the same values; gradients differ by
  // rounding. `bf16_result` states whether the result may be bf16, as for the ops in ops.h.
  // after() returns (*this)(norm(x)), or (*this)(x) if norm is null. gelu_after() returns gelu(after(norm, x)).
  Tensor after(const Layer* norm, const Tensor& x, bool bf16_result = false) const;
  Tensor gelu_after(const Layer* norm, const Tensor& x, Gelu form, bool bf16_result = false) const;
  // Returns gated_residual(skip, (*this)(x), gate, row_scale).
  Tensor joined(const Tensor& skip, const Tensor& x, const Tensor& gate, const Tensor& row_scale) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
