// A fully connected layer.
#pragma once

#include "autograd/ops.h"
#include "nn/child.h"
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

// Maps x [.., in] to x weight^T + bias [.., out]. Parameters: weight [out, in], bias [out]. The constructor throws
// Error for extents below 1.
class Linear : public WeightLayer {
 public:
  using Options = LinearOptions;  // the options of the constructor, for nn::Child
  explicit Linear(const LinearOptions& options);

  // The parameters. bias() is undefined if the layer has no bias.
  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }

  // Computes the outputs first .. last - 1 only: x [.., in] -> [.., last - first]. Hooks on this layer see this call as
  // a pass of its own.
  Tensor rows(const Tensor& x, std::int64_t first, std::int64_t last) const;

 protected:
  Tensor forward(const Tensor& x) const final;

 private:
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
