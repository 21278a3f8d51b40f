// Layer norm (Ba et al. 2016) over the last axis: y = weight h + bias, h = (x - mean) / sqrt(var + eps), with var
// divided by D. The gradients, with u = weight dy: dx = (u - mean(u) - h mean(u h)) / sqrt(var + eps), dweight = sum dy
// h, dbias = sum dy.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "autograd/ops/second.h"
#include "core/backend.h"

namespace plumb {

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  detail::check_operands("layer_norm", x, weight);
  detail::check_operands("layer_norm", x, bias);
  check(x.shape().rank() >= 1 && weight.shape() == Shape{x.dim(-1)} && bias.shape() == weight.shape(),
        "[layer_norm] expected input [.., {}] for weight {} and bias {}, got {}", weight.numel(), weight.shape(),
        bias.shape(), x.shape());
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
      [x = Saved(x), weight = Saved(weight), mean, rstd, eps](const Tensor& dy) {
        const detail::LayerNormGradients g = detail::layer_norm_backward(dy, x, weight, mean, rstd, eps);
        return Tensors{g.dx, g.dweight, g.dbias};
      });
}

namespace {

// h = (x - mean) / sqrt(var + eps).
Tensor normalized(const Tensor& x, double eps) {
  const Tensor centred = x - mean(x, -1, true);
  return centred * rsqrt(mean(centred * centred, -1, true) + eps);
}

// dx of the backward pass, written in primitives.
Tensor backward_composed(const Tensor& dy, const Tensor& x, const Tensor& weight, double eps) {
  const Tensor h = normalized(x, eps), centred = x - mean(x, -1, true),
               rstd = rsqrt(mean(centred * centred, -1, true) + eps), u = weight * dy;
  return rstd * (u - mean(u, -1, true) - h * mean(u * h, -1, true));
}

}  // namespace

// One kernel computes all three gradients. dweight = sum dy h is linear in dy. Under the gradient g of dweight, the
// gradient of dy is h g, and the gradient of x is that of a layer norm whose weight is g.
detail::LayerNormGradients detail::layer_norm_backward(const Tensor& dy, const Tensor& x, const Tensor& weight,
                                                       const Array& mean, const Array& rstd, double eps) {
  Array dx = empty_like(x.array()), dweight = empty_like(weight.array()), dbias = empty_like(dweight);
  kernels(dx).layer_norm_backward(dy.array(), x.array(), weight.array(), mean, rstd, dx, dweight, dbias);
  const Saved saved_dy(dy), saved_x(x), saved_weight(weight);
  LayerNormGradients result;
  result.dx = record_fused(
      "layer_norm_backward", dx, {dy, x, weight},
      [dy = saved_dy, x = saved_x, weight = saved_weight, mean, rstd](const Tensor& g) {
        Array ddy = empty_like(x.array()), of_x = empty_like(ddy), of_weight = empty_like(weight.array());
        kernels(ddy).layer_norm_second(g.array(), dy.array(), x.array(), weight.array(), mean, rstd, ddy, of_x,
                                       of_weight);
        return Tensors{Tensor(ddy), Tensor(of_x), Tensor(of_weight)};
      },
      through([eps](const Tensors& in) { return backward_composed(in[0], in[1], in[2], eps); }, {dy, x, weight}));
  result.dweight = record_fused(
      "layer_norm_backward", dweight, {dy, x},
      [dy = saved_dy, x = saved_x, mean, rstd, eps](const Tensor& g) {
        Array ddy = empty_like(x.array()), of_x = empty_like(ddy), m = empty_like(mean), s = empty_like(rstd);
        kernels(ddy).layer_norm_forward(x.array(), g.array(), full_like(g.array(), g.shape(), 0), eps, ddy, m, s);
        kernels(of_x).layer_norm_backward(dy.array(), x.array(), g.array(), mean, rstd, of_x, Out(), Out());
        return Tensors{Tensor(ddy), Tensor(of_x)};
      },
      through([eps](const Tensors& in) { return sum(detail::as_matrix(in[0] * normalized(in[1], eps)), 0); }, {dy, x}));
  result.dbias =
      record("sum", dbias, {dy}, [shape = dy.shape()](const Tensor& g) { return Tensors{broadcast_to(g, shape)}; });
  return result;
}

Tensor layer_norm_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const Tensor centred = x - mean(x, {-1}, true);
  return weight * (centred * rsqrt(mean(centred * centred, {-1}, true) + eps)) + bias;
}

}  // namespace plumb
