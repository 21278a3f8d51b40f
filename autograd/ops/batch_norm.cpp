// Batch norm (Ioffe, Szegedy 2015) of images [B, C, H, W], composed of primitives: y = weight (x - mean) rsqrt(variance
// + eps) + bias, with one mean and one variance for each channel.
#include "autograd/ops.h"

namespace plumb {
namespace {

Tensor by_channel(const Tensor& v) { return reshape(v, {1, v.numel(), 1, 1}); }

}  // namespace

std::pair<Tensor, Tensor> batch_statistics(const Tensor& x) {
  detail::check_float("batch_norm2d", x);
  check(x.shape().rank() == 4 && x.numel() > 0,
        "[batch_norm2d] expected images [B, C, H, W] with at least one pixel, got {}", x.shape());
  const Tensor m = mean(x, {0, 2, 3}), centred = x - by_channel(m);
  return {m, mean(centred * centred, {0, 2, 3})};
}

Tensor batch_norm2d(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  const auto [mean, variance] = batch_statistics(x);
  return batch_norm2d(x, mean, variance, weight, bias, eps);
}

Tensor batch_norm2d(const Tensor& x, const Tensor& mean, const Tensor& variance, const Tensor& weight,
                    const Tensor& bias, double eps) {
  detail::check_float("batch_norm2d", x);
  for (const Tensor& operand : {mean, variance, weight, bias}) {
    detail::check_operands("batch_norm2d", x, operand);
    check(x.shape().rank() == 4 && operand.shape() == Shape{x.dim(1)},
          "[batch_norm2d] expected input [B, C, H, W] with mean, variance, weight and bias [C], got {} and {}",
          x.shape(), operand.shape());
  }
  detail::check_eps("batch_norm2d", eps);
  const Tensor scale = weight * rsqrt(variance + eps);
  return (x - by_channel(mean)) * by_channel(scale) + by_channel(bias);
}

}  // namespace plumb
