// 2-d convolution (cross-correlation) with stride s and padding p: y[b, o, i, j] = bias[o] + sum over c, u, v of w[o,
// c, u, v] x[b, c, i s + u - p, j s + v - p]. Elements of x outside the image count as 0. The backward pass visits the
// same products: dx sums dy w, and dw sums dy x. The sums are in f64.
#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

// Calls f(index in x, index in w, index in y) for every product of the convolution, in the order of the elements of y.
template <class F>
void each_product(const Array& x, const Array& w, const Conv2dGeometry& o, const Array& y, F&& f) {
  const std::int64_t C = x.dim(1), H = x.dim(2), W = x.dim(3), kh = w.dim(2), kw = w.dim(3), filters = y.dim(1),
                     rows = y.dim(2), columns = y.dim(3);
  for (std::int64_t at = 0; at < y.numel(); ++at) {
    const std::int64_t j = at % columns, i = at / columns % rows, filter = at / (columns * rows) % filters,
                       b = at / (columns * rows * filters);
    for (std::int64_t c = 0; c < C; ++c)
      for (std::int64_t u = 0; u < kh; ++u)
        for (std::int64_t v = 0; v < kw; ++v) {
          const std::int64_t row = i * o.stride + u - o.padding, column = j * o.stride + v - o.padding;
          if (0 <= row && row < H && 0 <= column && column < W)
            f(((b * C + c) * H + row) * W + column, ((filter * C + c) * kh + u) * kw + v, at);
        }
  }
}

template <class T>
void store(const std::vector<double>& sums, const Out& to) {
  for (std::size_t i = 0; i < sums.size(); ++i) to.mutable_data<T>()[i] = static_cast<T>(sums[i]);
}

}  // namespace

void conv2d_forward(const Array& x, const Array& w, const Array& b, const Conv2dGeometry& options, const Out& y) {
  dispatch_float(x.dtype(), "conv2d", [&]<class T>() {
    const std::int64_t plane = y.dim(2) * y.dim(3);
    std::vector<double> sums(static_cast<std::size_t>(y.numel()));
    if (b.defined())
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = b.data<T>()[static_cast<std::int64_t>(i) / plane % y.dim(1)];
    each_product(x, w, options, y, [&](std::int64_t ix, std::int64_t iw, std::int64_t iy) {
      sums[static_cast<std::size_t>(iy)] += static_cast<double>(x.data<T>()[ix]) * w.data<T>()[iw];
    });
    store<T>(sums, y);
  });
}

void conv2d_backward(const Array& dy, const Array& x, const Array& w, const Conv2dGeometry& options, const Out& dx,
                     const Out& dw, const Out& db) {
  dispatch_float(x.dtype(), "conv2d", [&]<class T>() {
    const T* g = dy.data<T>();
    const auto zeros = [](const Array& a) {
      return std::vector<double>(a.defined() ? static_cast<std::size_t>(a.numel()) : 0);
    };
    std::vector<double> sx = zeros(dx), sw = zeros(dw), sb = zeros(db);
    each_product(x, w, options, dy, [&](std::int64_t ix, std::int64_t iw, std::int64_t iy) {
      if (dx.defined()) sx[static_cast<std::size_t>(ix)] += static_cast<double>(g[iy]) * w.data<T>()[iw];
      if (dw.defined()) sw[static_cast<std::size_t>(iw)] += static_cast<double>(g[iy]) * x.data<T>()[ix];
    });
    if (db.defined())
      for (std::int64_t i = 0; i < dy.numel(); ++i)
        sb[static_cast<std::size_t>(i / (dy.dim(2) * dy.dim(3)) % dy.dim(1))] += g[i];
    store<T>(sx, dx);
    store<T>(sw, dw);
    store<T>(sb, db);
  });
}

}  // namespace plumb::reference
