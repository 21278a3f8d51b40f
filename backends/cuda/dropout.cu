// y = x / (1 - p) where the draw keeps the element: a thread draws for eight elements at once, as the layout of core/random.h has them.
// Bytes: x is read once, y written once; no mask is kept.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

// Thread i has the elements of block first / 8 + i, of which those from first on and before first + n are the array's.
template <class T>
__global__ void dropout_kernel(const T* x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first, T scale, T* y,
                               std::int64_t n) {
  const std::uint64_t block = first / 8 + static_cast<std::uint64_t>(thread_number());
  const Draw draw = element_draw(key, step, Purpose::dropout, block);
  for (int j = 0; j < 8; ++j) {
    const std::int64_t i = static_cast<std::int64_t>(block * 8 + static_cast<std::uint64_t>(j) - first);
    if (0 <= i && i < n) y[i] = draw16(draw, j) < threshold ? T{0} : x[i] * scale;
  }
}

}  // namespace

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold, std::uint64_t first_element, const Out& y) {
  const auto n = static_cast<std::uint64_t>(x.numel());
  const auto blocks = static_cast<std::int64_t>(n == 0 ? 0 : (first_element + n - 1) / 8 - first_element / 8 + 1);
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    launch_for(blocks, dropout_kernel<T>, elements<T>(x), key, step, threshold, first_element, static_cast<T>(1 / (1 - threshold / 65536.0)),
               elements<T>(y), x.numel());
  });
}

}  // namespace plumb::cuda
