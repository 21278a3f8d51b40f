// The linear layer in one op with its neighbours.
#pragma once

#include <optional>

#include "autograd/ops.h"

namespace plumb {

// The parameters of a layer norm over the last axis: weight [K], bias [K], and eps as in layer_norm().
struct NormParameters {
  Tensor weight = {}, bias = {};
  double eps = 1e-6;
};
// The residual sum skip + row_scale * gate * y, with the shapes of gated_residual().
struct ResidualSum {
  Tensor skip, gate = {}, row_scale = {};
};
// The dtype of a result: that of the weight (f32 or f64), or that of the operands of the product. The second is bf16 if
// the operands are rounded to bf16. Ask for it if the result goes to an op that accepts bf16: linear() (as x),
// attention_qkv() or cast().
enum class ResultDType { weight, product };
// The neighbours of a linear layer that linear() computes in the same pass over the rows, so that intermediate results
// are neither written nor kept. Each field is optional. `sum` excludes `gelu` and ResultDType::product.
struct LinearFusion {
  NormParameters norm = {};             // a layer norm of x, before the product
  std::optional<Gelu> gelu = {};        // GELU, after the product
  std::optional<ResidualSum> sum = {};  // the residual sum, after the product
  ResultDType result = ResultDType::weight;
};
// Linear layer with its neighbours: sum(gelu(norm(x) weight^T + bias)), up to rounding. Operands and rounding are those
// of linear() without `fusion`.
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, const LinearFusion& fusion);

}  // namespace plumb
