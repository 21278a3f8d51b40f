// Kernels that move elements without computing (only scatter_add adds).
#include <cstring>

#include "backends/reference/kernels.h"

namespace plumb::reference {
namespace {

struct Split {
  std::int64_t outer, inner;  // outer: product of the extents before the axis; inner: bytes of one index of the axis
};

Split split(const Array& a, int axis) {
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(size_of(a.dtype()));
  for (int i = 0; i < axis; ++i) outer *= a.dim(i);
  for (int i = axis + 1; i < a.shape().rank(); ++i) inner *= a.dim(i);
  return {outer, inner};
}

}  // namespace

void permute(const Array& x, std::span<const int> axes, const Out& y) {
  const int rank = x.shape().rank();
  std::array<std::int64_t, Shape::max_rank> x_strides{};
  std::int64_t stride = 1;
  for (int i = rank - 1; i >= 0; --i) {
    x_strides[static_cast<std::size_t>(i)] = stride;
    stride *= x.dim(i);
  }
  dispatch_any(x.dtype(), [&]<class T>() {
    for (std::int64_t i = 0; i < y.numel(); ++i) {
      std::int64_t rest = i, from = 0;
      for (int axis = rank - 1; axis >= 0; --axis) {
        from += rest % y.dim(axis) * x_strides[static_cast<std::size_t>(axes[static_cast<std::size_t>(axis)])];
        rest /= y.dim(axis);
      }
      y.mutable_data<T>()[i] = x.data<T>()[from];
    }
  });
}

void slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const Split s = split(x, axis);
  const std::int64_t run = y.dim(axis) * s.inner, stride = x.dim(axis) * s.inner;
  for (std::int64_t i = 0; i < s.outer; ++i)
    std::memcpy(static_cast<char*>(y.mutable_bytes()) + i * run,
                static_cast<const char*>(x.bytes()) + i * stride + start * s.inner, static_cast<std::size_t>(run));
}

void assign_slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const Split s = split(y, axis);
  const std::int64_t run = x.dim(axis) * s.inner, stride = y.dim(axis) * s.inner;
  for (std::int64_t i = 0; i < s.outer; ++i)
    std::memcpy(static_cast<char*>(y.mutable_bytes()) + i * stride + start * s.inner,
                static_cast<const char*>(x.bytes()) + i * run, static_cast<std::size_t>(run));
}

void gather(const Array& x, const Array& index, const Out& y) {
  const std::int64_t row = split(x, 0).inner;
  for (std::int64_t i = 0; i < index.numel(); ++i)
    std::memcpy(static_cast<char*>(y.mutable_bytes()) + i * row,
                static_cast<const char*>(x.bytes()) + index.data<std::int64_t>()[i] * row,
                static_cast<std::size_t>(row));
}

void scatter_add(const Array& x, const Array& index, const Out& y) {
  dispatch_float(x.dtype(), "scatter_add", [&]<class T>() {
    const std::int64_t row = split(y, 0).inner / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = 0; i < index.numel(); ++i)
      for (std::int64_t j = 0; j < row; ++j)
        y.mutable_data<T>()[index.data<std::int64_t>()[i] * row + j] += x.data<T>()[i * row + j];
  });
}

}  // namespace plumb::reference
