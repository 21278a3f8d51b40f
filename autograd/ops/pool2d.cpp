// Pooling of images [B, C, H, W]. For max_pool2d, a kernel finds the largest pixel of each window, and
// take_along_axis() takes it. avg_pool2d is a convolution with one filter of equal weights.
#include "autograd/node.h"
#include "autograd/ops.h"
#include "core/backend.h"

namespace plumb {
namespace {

void check_images(const char* op, const Tensor& x, const Pool2dOptions& o) {
  detail::check_float(op, x);
  check(x.shape().rank() == 4, "[{}] expected images [B, C, H, W], got {}", op, x.shape());
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  check(1 <= o.kernel && o.kernel <= most && 0 <= o.stride && o.stride <= most,
        "[{}] expected a kernel of at least 1 and a stride of at least 1, or 0 for the kernel's extent, both below "
        "2^31, got {} and {}",
        op, o.kernel, o.stride);
  check(0 <= o.padding && o.padding <= o.kernel / 2,
        "[{}] expected a padding of at least 0 and at most half of the kernel's {}, got {}", op, o.kernel, o.padding);
  check(x.dim(2) > 0 && x.dim(3) > 0 && x.dim(2) + 2 * o.padding >= o.kernel && x.dim(3) + 2 * o.padding >= o.kernel,
        "[{}] expected an image at least as large as the kernel of {} after padding by {}, got {}", op, o.kernel,
        o.padding, x.shape());
}

}  // namespace

Tensor max_pool2d(const Tensor& x, const Pool2dOptions& options) {
  check_images("max_pool2d", x, options);
  const std::int64_t planes = x.dim(0) * x.dim(1), pixels = x.dim(2) * x.dim(3);
  const Shape result({x.dim(0), x.dim(1), options.output(x.dim(2)), options.output(x.dim(3))}, "max_pool2d");
  Array index(result, DType::i64, x.device());
  kernels(index).max_pool2d(x.array(), options, index);
  const Array flat = index.reshaped(Shape{planes, result[2] * result[3]});
  return reshape(take_along_axis(reshape(x, Shape{planes, pixels}), Tensor(flat), 1), result);
}

Tensor avg_pool2d(const Tensor& x, const Pool2dOptions& options) {
  check_images("avg_pool2d", x, options);
  const std::int64_t k = options.kernel;
  const Tensor filter =
      full(Shape({1, 1, k, k}, "avg_pool2d"), 1 / static_cast<double>(k * k), {x.dtype(), x.device()});
  const Tensor y = conv2d(reshape(x, Shape{x.dim(0) * x.dim(1), 1, x.dim(2), x.dim(3)}), filter, {},
                          {.stride = options.step(), .padding = options.padding});
  return reshape(y, Shape{x.dim(0), x.dim(1), y.dim(2), y.dim(3)});
}

}  // namespace plumb
