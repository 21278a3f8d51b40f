// Kernels that move elements of any dtype as bytes, and scatter_add.
#include <cstring>

#include "backends/cpu/kernels.h"
#include "backends/cpu/parallel.h"
#include "backends/walk.h"

namespace plumb::cpu {
namespace {

// Copies like memcpy, but without a function call for short runs, which are the most common here.
inline void copy(char* to, const char* from, std::int64_t bytes) {
  if (bytes > 512) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return;
  }
  for (; bytes >= 16; bytes -= 16, to += 16, from += 16) std::memcpy(to, from, 16);
  if (bytes & 8) std::memcpy(to, from, 8), to += 8, from += 8;
  if (bytes & 4) std::memcpy(to, from, 4), to += 4, from += 4;
  for (bytes &= 3; bytes > 0; --bytes) *to++ = *from++;
}

// Copies `count` runs of `run` bytes. f(i) returns the destination and the source of run i.
template <class F>
void copy_runs(std::int64_t count, std::int64_t run, F&& f) {
  parallel_rows(count, (run + 3) / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const auto [to, from] = f(i);
      copy(to, from, run);
    }
  });
}

struct Ends {
  char* to;
  const char* from;
};

struct Split {
  std::int64_t outer, inner;  // outer: product of the extents before the axis; inner: bytes of one index of the axis
};

Split split(const Array& a, int axis) {
  std::int64_t outer = 1, inner = static_cast<std::int64_t>(size_of(a.dtype()));
  for (int i = 0; i < axis; ++i) outer *= a.dim(i);
  for (int i = axis + 1; i < a.shape().rank(); ++i) inner *= a.dim(i);
  return {outer, inner};
}

const char* bytes(const Array& a) { return static_cast<const char*>(a.bytes()); }
char* bytes(const Out& a) { return static_cast<char*>(a.mutable_bytes()); }

}  // namespace

void permute(const Array& x, std::span<const int> axes, const Out& y) {
  const Strides dense = broadcast_strides(x.shape(), x.shape());
  Strides strides{};
  for (std::size_t i = 0; i < axes.size(); ++i) strides[i] = dense[static_cast<std::size_t>(axes[i])];
  const Walk<1> walk(y.shape(), {strides});
  dispatch_any(x.dtype(), [&]<class T>() {
    const T* from = x.data<T>();
    T* to = y.mutable_data<T>();
    const std::int64_t step = walk.inner_stride[0];
    parallel_elements(y.numel(), [&](std::int64_t begin, std::int64_t end) {
      walk.run(begin, end, [&](std::int64_t n, std::int64_t offset, const auto& source) {
        const T* p = from + source[0];
        if (step == 1)
          copy(reinterpret_cast<char*>(to + offset), reinterpret_cast<const char*>(p),
               n * static_cast<std::int64_t>(sizeof(T)));
        else
          for (std::int64_t i = 0; i < n; ++i) to[offset + i] = p[i * step];
      });
    });
  });
}

void slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const Split s = split(x, axis);
  const std::int64_t run = y.dim(axis) * s.inner, stride = x.dim(axis) * s.inner;
  copy_runs(s.outer, run, [&](std::int64_t i) {
    return Ends{bytes(y) + i * run, bytes(x) + i * stride + start * s.inner};
  });
}

void assign_slice(const Array& x, int axis, std::int64_t start, const Out& y) {
  const Split s = split(y, axis);
  const std::int64_t run = x.dim(axis) * s.inner, stride = y.dim(axis) * s.inner;
  copy_runs(s.outer, run, [&](std::int64_t i) {
    return Ends{bytes(y) + i * stride + start * s.inner, bytes(x) + i * run};
  });
}

void gather(const Array& x, const Array& index, const Out& y) {
  const std::int64_t row = split(x, 0).inner;
  const std::int64_t* rows = index.data<std::int64_t>();
  copy_runs(index.numel(), row, [&](std::int64_t i) { return Ends{bytes(y) + i * row, bytes(x) + rows[i] * row}; });
}

// Each thread adds all rows for a range of columns, so that rows with the same index are added in order.
void scatter_add(const Array& x, const Array& index, const Out& y) {
  const std::int64_t row = split(y, 0).inner / static_cast<std::int64_t>(sizeof(float)), count = index.numel();
  const std::int64_t* rows = index.data<std::int64_t>();
  const float* from = x.data<float>();
  float* to = y.mutable_data<float>();
  parallel_for(row, count * row < 32768 ? row : 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t j = begin; j < end; ++j) to[rows[i] * row + j] += from[i * row + j];
  });
}

}  // namespace plumb::cpu
