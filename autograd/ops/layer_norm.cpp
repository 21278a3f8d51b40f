// Layer norm (Ba et al. 2016) over the last axis: y = weight h + bias, h = (x - mean) / sqrt(var + eps), var divided by D.
// dx = (u - mean(u) - h mean(u h)) / sqrt(var + eps), u = weight dy; dweight = sum dy h; dbias = sum dy.
#include "autograd/node.h"
#include "autograd/ops.h"

namespace plumb {

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  detail::check_operands("layer_norm", x, weight);
  detail::check_operands("layer_norm", x, bias);
  check(x.shape().rank() >= 1 && weight.shape() == Shape{x.dim(-1)} && bias.shape() == weight.shape(),
        "[layer_norm] expected input [.., {}] for weight {} and bias {}, got {}", weight.numel(), weight.shape(), bias.shape(), x.shape());
  detail::check_eps("layer_norm", eps);
  Array y = empty_like(x.array()), mean = empty_like(y, x.shape().with(-1, 1)), rstd = empty_like(mean);
  kernels(y).layer_norm_forward(x.array(), weight.array(), bias.array(), eps, y, mean, rstd);
  return record_fused(
      "layer_norm", y, {x, weight, bias},
      [x = Saved(x), weight = Saved(weight), mean, rstd](const Tensor& dy) {
        Array dx = empty_like(x.array()), dweight = empty_like(weight.array()), dbias = empty_like(dweight);
        kernels(dx).layer_norm_backward(dy.array(), x.array(), weight.array(), mean, rstd, dx, dweight, dbias);
        return Tensors{Tensor(dx), Tensor(dweight), Tensor(dbias)};
      },
      through([eps](const Tensors& in) { return layer_norm_composed(in[0], in[1], in[2], eps); }, {x, weight, bias}));
}

Tensor layer_norm_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor centred = x - mean(x, {-1}, true);
  return weight * (centred * rsqrt(mean(centred * centred, {-1}, true) + eps)) + bias;
}

}  // namespace plumb
