// 2-d convolution like PyTorch's conv2d: cross-correlation of x [B, C, H, W] with weight [O, C, kh, kw].
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

Shape output_shape(const Tensor& x, const Tensor& weight, const Conv2dGeometry& o) {
  return Shape({x.dim(0), weight.dim(0), o.output(x.dim(2), weight.dim(2)), o.output(x.dim(3), weight.dim(3))},
               "conv2d");
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dGeometry& options) {
  detail::check_operands("conv2d", x, weight);
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  check(1 <= options.stride && options.stride <= most && 0 <= options.padding && options.padding <= most,
        "[conv2d] expected a stride of at least 1 and a padding of at least 0, both below 2^31, got {} and {}",
        options.stride, options.padding);
  check(x.shape().rank() == 4 && weight.shape().rank() == 4 && x.dim(1) == weight.dim(1) && weight.numel() > 0,
        "[conv2d] expected input [B, C, H, W] and weight [O, C, kh, kw] with the same C, got {} and {}", x.shape(),
        weight.shape());
  const std::int64_t p = options.padding;
  check(x.dim(2) + 2 * p >= weight.dim(2) && x.dim(3) + 2 * p >= weight.dim(3),
        "[conv2d] expected an image at least as large as the filter {} after padding by {}, got {}", weight.shape(), p,
        x.shape());
  if (bias.defined()) {
    detail::check_operands("conv2d", x, bias);
    check(bias.shape() == Shape{weight.dim(0)}, "[conv2d] expected bias [{}] for weight {}, got {}", weight.dim(0),
          weight.shape(), bias.shape());
  }
  Array y = empty_like(x.array(), output_shape(x, weight, options));
  kernels(y).conv2d_forward(x.array(), weight.array(), bias.array(), options, y);
  return record_fused(
      "conv2d", y, {x, weight, bias},
      [x = Saved(x), weight = Saved(weight), want_bias = bias.requires_grad(), options](const Tensor& dy) {
        Array dx = x.requires_grad() ? empty_like(x.array()) : Array(),
              dw = weight.requires_grad() ? empty_like(weight.array()) : Array(),
              db = want_bias ? empty_like(weight.array(), {weight.get().dim(0)}) : Array();
        kernels(dy.array()).conv2d_backward(dy.array(), x.array(), weight.array(), options, dx, dw, db);
        return Tensors{Tensor(dx), Tensor(dw), Tensor(db)};
      },
      through([options](const Tensors& in) { return conv2d_composed(in[0], in[1], in[2], options); },
              {x, weight, bias}));
}

// Gathers the patches of x under the filter into rows, and multiplies them by the weight in one matrix product.
Tensor conv2d_composed(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dGeometry& options) {
  const std::int64_t B = x.dim(0), C = x.dim(1), H = x.dim(2), W = x.dim(3), O = weight.dim(0), kh = weight.dim(2),
                     kw = weight.dim(3);
  const Shape shape = output_shape(x, weight, options);
  if (shape.numel() == 0) {  // the derivatives are 0, and an image of no sample may have any size
    const Tensor none = sum(x) + sum(weight);
    return broadcast_to(bias.defined() ? none + sum(bias) : none, shape);
  }
  const std::int64_t outside = H * W;  // index of an extra pixel of zeros after the image
  std::vector<std::int64_t> index;     // the pixel under each entry of the filter, [H' W', kh kw]
  for (std::int64_t i = 0; i < shape[2]; ++i)
    for (std::int64_t j = 0; j < shape[3]; ++j)
      for (std::int64_t u = 0; u < kh; ++u)
        for (std::int64_t v = 0; v < kw; ++v) {
          const std::int64_t row = i * options.stride + u - options.padding,
                             column = j * options.stride + v - options.padding;
          index.push_back(0 <= row && row < H && 0 <= column && column < W ? row * W + column : outside);
        }
  const Tensor pixels =
      concat({reshape(permute(x, {2, 3, 0, 1}), {H * W, B, C}), full({1, B, C}, 0, {x.dtype(), x.device()})}, 0);
  const Tensor patches =
      gather(pixels, integers(index, {shape[2] * shape[3], kh * kw}, x.device()));  // [H' W', kh kw, B, C]
  const Tensor rows = reshape(permute(patches, {2, 0, 3, 1}), {B, shape[2] * shape[3], C * kh * kw});
  return reshape(transpose(linear_composed(rows, reshape(weight, {O, C * kh * kw}), bias)), shape);
}

}  // namespace plumb
