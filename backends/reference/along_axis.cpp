// Kernels that work along one axis, separately for each position on the other axes.
#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

// Calls f for each position on the other axes. The arguments of f are the offset of the row in `a`, the offset of the
// row in `b`, and the distance between neighbouring elements.
template <class F>
void each_row(const Array& a, const Array& b, int axis, F&& f) {
  std::int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= a.dim(i);
  for (int i = axis + 1; i < a.shape().rank(); ++i) inner *= a.dim(i);
  for (std::int64_t i = 0; i < outer * inner; ++i)
    f(i / inner * a.dim(axis) * inner + i % inner, i / inner * b.dim(axis) * inner + i % inner, inner);
}

}  // namespace

void cumsum(const Array& x, int axis, bool from_the_end, const Out& y) {
  dispatch_float(x.dtype(), "cumsum", [&]<class T>() {
    each_row(x, y, axis, [&](std::int64_t row, std::int64_t, std::int64_t step) {
      double sum = 0;
      for (std::int64_t k = 0; k < x.dim(axis); ++k) {
        const std::int64_t at = row + (from_the_end ? x.dim(axis) - 1 - k : k) * step;
        y.mutable_data<T>()[at] = static_cast<T>(sum += x.data<T>()[at]);
      }
    });
  });
}

void take_along(const Array& x, const Array& index, int axis, const Out& y) {
  dispatch_any(x.dtype(), [&]<class T>() {
    each_row(x, y, axis, [&](std::int64_t from, std::int64_t to, std::int64_t step) {
      for (std::int64_t k = 0; k < y.dim(axis); ++k)
        y.mutable_data<T>()[to + k * step] = x.data<T>()[from + index.data<std::int64_t>()[to + k * step] * step];
    });
  });
}

void scatter_add_along(const Array& x, const Array& index, int axis, const Out& y) {
  dispatch_float(x.dtype(), "scatter_add_along", [&]<class T>() {
    each_row(x, y, axis, [&](std::int64_t from, std::int64_t to, std::int64_t step) {
      for (std::int64_t k = 0; k < x.dim(axis); ++k)
        y.mutable_data<T>()[to + index.data<std::int64_t>()[from + k * step] * step] += x.data<T>()[from + k * step];
    });
  });
}

}  // namespace plumb::reference
