// max_pool2d: one thread finds the largest pixel of one window. Traffic: each pixel is read once for each window that
// contains the pixel. Each index is written once.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

template <class T>
__global__ void max_pool2d_kernel(const T* x, std::int64_t H, std::int64_t W, std::int64_t kernel, std::int64_t step,
                                  std::int64_t padding, std::int64_t rows, std::int64_t columns, std::int64_t* index,
                                  std::int64_t n) {
  using std::isnan;
  const std::int64_t i = thread_number();
  if (i >= n) return;
  const T* const plane = x + i / (rows * columns) * H * W;
  const std::int64_t top = i / columns % rows * step - padding, left = i % columns * step - padding;
  const std::int64_t first_row = top > 0 ? top : 0, first_column = left > 0 ? left : 0;
  std::int64_t best = first_row * W + first_column;
  for (std::int64_t r = first_row; r < top + kernel && r < H; ++r)
    for (std::int64_t c = first_column; c < left + kernel && c < W; ++c) {
      const std::int64_t p = r * W + c;
      if (!isnan(plane[best]) && (isnan(plane[p]) || plane[p] > plane[best])) best = p;
    }
  index[i] = best;
}

}  // namespace

void max_pool2d(const Array& x, const Pool2dOptions& options, const Out& index) {
  dispatch_float(x.dtype(), "max_pool2d", [&]<class T>() {
    launch_for(index.numel(), max_pool2d_kernel<T>, elements<T>(x), x.dim(2), x.dim(3), options.kernel, options.step(),
               options.padding, index.dim(2), index.dim(3), elements<std::int64_t>(index), index.numel());
  });
}

}  // namespace plumb::cuda
