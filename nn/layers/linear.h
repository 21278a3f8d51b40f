#pragma once

#include "nn/module.h"

namespace plumb::nn {

struct LinearOptions {
  std::int64_t in, out;
  bool bias = true;
  Init init = Init::truncated_normal(0.02);  // of the weight; the bias starts at 0
};

// x [.., in] -> x weight^T + bias [.., out]; weight [out, in], bias [out].
class Linear : public Layer {
 public:
  explicit Linear(const LinearOptions& options);

  const Tensor& weight() const { return weight_; }
  const Tensor& bias() const { return bias_; }  // undefined without one
  Init& weight_init() { return own("weight").init; }
  void scale_init(double factor) { weight_init() = weight_init().scaled(factor); }

 protected:
  Tensor forward(const Tensor& x) const override;

 private:
  Tensor weight_, bias_;
};

}  // namespace plumb::nn
