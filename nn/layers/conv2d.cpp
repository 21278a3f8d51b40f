#include "nn/layers/conv2d.h"

#include "autograd/ops.h"

namespace plumb::nn {

Conv2d::Conv2d(const Conv2dOptions& o) : WeightLayer("Conv2d"), options_(o) {
  check(o.in > 0 && o.out > 0 && o.kernel > 0, "[conv2d] expected positive extents, got in {}, out {} and kernel {}",
        o.in, o.out, o.kernel);
  weight_ = parameter("weight", {o.out, o.in, o.kernel, o.kernel}, o.init, Role::weight);
  if (o.bias) bias_ = parameter("bias", {o.out}, Init::constant(0), Role::bias);
}

Tensor Conv2d::forward(const Tensor& images) const {
  return conv2d(images, weight_, bias_, {.stride = options_.stride, .padding = options_.padding});
}

}  // namespace plumb::nn
