// Dropout, and the scales that drop samples and heads.
//   dropout: if the draw keeps the element, y = x / (1 - p), else y = 0. One thread draws for eight neighbouring
//     elements at once (the layout of draws in core/random.h). Traffic: x is read once, y is written once. No mask is
//     stored.
//   drop_path_scale, drop_head_scale: one thread per sample.
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/pack.cuh"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {
namespace {

// Thread i computes the eight elements of draw block first / 8 + i. Elements before `first` or from first + n on are
// not part of the array, and the thread skips these elements.
template <class T>
__global__ void dropout_kernel(const T* x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold,
                               std::uint64_t first, T scale, T* y, std::int64_t n) {
  const std::uint64_t block = first / 8 + static_cast<std::uint64_t>(thread_number());
  const Draw draw = element_draw(key, step, Purpose::dropout, block);
  for (int j = 0; j < 8; ++j) {
    const std::int64_t i = static_cast<std::int64_t>(block * 8 + static_cast<std::uint64_t>(j) - first);
    if (0 <= i && i < n) y[i] = draw16(draw, j) < threshold ? T{0} : x[i] * scale;
  }
}

template <class T>
__device__ __forceinline__ T as(double x) {
  return static_cast<T>(static_cast<arithmetic<T>>(x));
}

template <class T>
__global__ void drop_path_scale_kernel(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample,
                                       std::uint32_t branch, std::uint32_t threshold, double kept, T* y,
                                       std::int64_t samples) {
  const std::int64_t b = thread_number();
  if (b >= samples) return;
  const Draw draw = philox(
      {step, static_cast<std::uint32_t>(Purpose::drop_path), first_sample + static_cast<std::uint32_t>(b), branch},
      key);
  y[b] = as<T>(draw16(draw, 0) < threshold ? 0 : kept);
}

__device__ __forceinline__ std::uint32_t head_draw(std::uint64_t key, std::uint32_t step, std::uint32_t sample,
                                                   int head) {
  return draw16(
      philox({step, static_cast<std::uint32_t>(Purpose::drop_head), sample, static_cast<std::uint32_t>(head / 8)}, key),
      head % 8);
}

// Computes the scales of one sample per thread. The thread makes the draws of its heads twice: first to count the kept
// heads, then to write.
template <class T>
__global__ void drop_head_scale_kernel(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample,
                                       std::uint32_t threshold, T* y, std::int64_t samples, int heads) {
  const std::int64_t b = thread_number();
  if (b >= samples) return;
  const std::uint32_t sample = first_sample + static_cast<std::uint32_t>(b);
  std::uint32_t highest = 0;
  int kept = 0, ties = 0;  // kept: number of heads with draw >= threshold; ties: number of heads with the highest draw
  for (int h = 0; h < heads; ++h) {
    const std::uint32_t draw = head_draw(key, step, sample, h);
    kept += draw >= threshold;
    ties = draw > highest || h == 0 ? 1 : ties + (draw == highest);
    highest = max(highest, draw);
  }
  const std::uint32_t keep_from = min(threshold, highest);
  const double scale = static_cast<double>(heads) / (kept > 0 ? kept : ties);
  for (int h = 0; h < heads; ++h) y[b * heads + h] = as<T>(head_draw(key, step, sample, h) >= keep_from ? scale : 0);
}

}  // namespace

void drop_path_scale(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample, std::uint32_t branch,
                     std::uint32_t threshold, double kept, const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() {
    launch_for(y.numel(), drop_path_scale_kernel<T>, key, step, first_sample, branch, threshold, kept, elements<T>(y),
               y.numel());
  });
}

void drop_head_scale(std::uint64_t key, std::uint32_t step, std::uint32_t first_sample, std::uint32_t threshold,
                     const Out& y) {
  dispatch_any(y.dtype(), [&]<class T>() {
    launch_for(y.dim(0), drop_head_scale_kernel<T>, key, step, first_sample, threshold, elements<T>(y), y.dim(0),
               static_cast<int>(y.dim(2)));
  });
}

void dropout(const Array& x, std::uint64_t key, std::uint32_t step, std::uint32_t threshold,
             std::uint64_t first_element, const Out& y) {
  const auto n = static_cast<std::uint64_t>(x.numel());
  const auto blocks = static_cast<std::int64_t>(n == 0 ? 0 : (first_element + n - 1) / 8 - first_element / 8 + 1);
  dispatch_float(x.dtype(), "dropout", [&]<class T>() {
    launch_for(blocks, dropout_kernel<T>, elements<T>(x), key, step, threshold, first_element,
               static_cast<T>(1 / (1 - threshold / 65536.0)), elements<T>(y), x.numel());
  });
}

}  // namespace plumb::cuda
