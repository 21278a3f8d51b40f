// 2-d convolution by oneDNN, in blocks of samples. The blocks depend only on the shape, and one thread computes one
// block. The weight gradients of the blocks are added in order.
#include "backends/cpu/column_sums.h"
#include "backends/cpu/kernels.h"
#include "backends/cpu/onednn.h"
#include "backends/cpu/parallel.h"
#include "backends/cpu/scratch.h"

namespace plumb::cpu {
namespace {

// A convolution split into blocks of samples.
struct Blocks {
  Convolution all;
  std::int64_t x_size, y_size;  // x_size, y_size: number of elements of one sample
  // grain: number of samples per block; count: number of blocks. If the convolution has at least half a million
  // operations, there are up to eight blocks. Otherwise there is one block.
  std::int64_t grain, count;

  Blocks(const Array& x, const Array& w, const Conv2dGeometry& o, const Array& y)
      : all{.samples = x.dim(0),
            .channels = x.dim(1),
            .height = x.dim(2),
            .width = x.dim(3),
            .filters = w.dim(0),
            .kernel_height = w.dim(2),
            .kernel_width = w.dim(3),
            .stride = o.stride,
            .padding = o.padding},
        x_size(x.dim(1) * x.dim(2) * x.dim(3)),
        y_size(y.dim(1) * y.dim(2) * y.dim(3)),
        grain(2 * y.numel() * x.dim(1) * w.dim(2) * w.dim(3) < 500'000 ? std::max<std::int64_t>(1, x.dim(0))
                                                                       : (x.dim(0) + 7) / 8),
        count((x.dim(0) + grain - 1) / grain) {}

  // Calls f(convolution of the block, index of the block, offset of the block's samples in x, offset in y).
  template <class F>
  void run(F&& f) const {
    parallel_for(all.samples, grain, [&](std::int64_t begin, std::int64_t end) {
      Convolution c = all;
      c.samples = end - begin;
      f(c, begin / grain, begin * x_size, begin * y_size);
    });
  }
};

}  // namespace

void conv2d_forward(const Array& x, const Array& w, const Array& b, const Conv2dGeometry& options, const Out& y) {
  if (x.numel() == 0) return reference_kernels().conv2d_forward(x, w, b, options, y);  // oneDNN would write nothing
  Blocks(x, w, options, y).run([&](const Convolution& c, std::int64_t, std::int64_t at_x, std::int64_t at_y) {
    convolve(c, x.data<float>() + at_x, w.data<float>(), b.defined() ? b.data<float>() : nullptr,
             y.mutable_data<float>() + at_y);
  });
}

void conv2d_backward(const Array& dy, const Array& x, const Array& w, const Conv2dGeometry& options, const Out& dx,
                     const Out& dw, const Out& db) {
  if (x.numel() == 0) return reference_kernels().conv2d_backward(dy, x, w, options, dx, dw, db);
  const Blocks blocks(x, w, options, dy);
  const Scratch partial(dw.defined() ? blocks.count * w.numel() : 0);
  blocks.run([&](const Convolution& c, std::int64_t block, std::int64_t at_x, std::int64_t at_y) {
    const float* gradient = dy.data<float>() + at_y;
    if (dx.defined()) convolve_to_data(c, gradient, w.data<float>(), dx.mutable_data<float>() + at_x);
    if (dw.defined()) convolve_to_weights(c, x.data<float>() + at_x, gradient, partial.data() + block * w.numel());
  });
  if (dw.defined()) add_partials(partial.data(), blocks.count, w.numel(), dw.mutable_data<float>());
  if (db.defined()) reduce(Reduce::sum, dy, db.reshaped({1, db.numel(), 1, 1}));
}

}  // namespace plumb::cpu
