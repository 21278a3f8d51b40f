// A fully connected layer.
#pragma once

#include "autograd/ops.h"
#include "nn/layers/weight_layer.h"

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

// The neighbours of a Linear that the same op may compute. Each field is optional; `gelu` and `sum` exclude each other.
struct LinearNeighbours {
  const Layer* norm = nullptr;          // before the layer
  std::optional<Gelu> gelu = {};        // after the layer
  std::optional<ResidualSum> sum = {};  // after the layer
  ResultDType result = ResultDType::weight;
};

// Maps x [.., in] to x weight^T + bias [.., out]. Parameters: weight [out, in], bias [out]. The constructor throws
// Error for extents below 1.
class Linear final : public WeightLayer {
 public:
  explicit Linear(const LinearOptions& options);

  // The parameters. bias() is undefined if the layer has no bias.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

  using Layer::operator();
  // Computes sum(gelu((*this)(norm(x)))) in one op if neither this layer nor the norm has hooks and the norm can be
  // fused (Layer::fusible_norm()), and in separate ops otherwise. Both give the same values; gradients differ by
  // rounding.
  Tensor operator()(const Tensor& x, const LinearNeighbours& with) const;
  // Computes the outputs first .. last - 1 only: x [.., in] -> [.., last - first]. Hooks on this layer see this call as
  // a pass of its own.
  Tensor rows(const Tensor& x, std::int64_t first, std::int64_t last) const;

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
