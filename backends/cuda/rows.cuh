// Kernels on rows, and sums over rows. A kernel on rows uses one warp per row, and the lanes of the warp step through
// the columns together. A sum over rows uses one thread per column.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {

constexpr int row_warps = 4;  // number of warps per block, which is also the number of rows per block

// warp_row() returns the row of this warp, in a grid that launch_rows() started. lane() returns the number of this
// thread in its warp, 0 to 31.
__device__ __forceinline__ std::int64_t warp_row() { return std::int64_t{blockIdx.x} * row_warps + threadIdx.x / 32; }
__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }

// Launches `kernel` with one warp per row. The kernel must skip row numbers from `rows` on. For such a row, a whole
// warp returns.
template <class... Parameters, class... Arguments>
void launch_rows(std::int64_t rows, void (*kernel)(Parameters...), Arguments... arguments) {
  if (rows > 0)
    launch(kernel, dim3{static_cast<unsigned>((rows + row_warps - 1) / row_warps), 1, 1}, dim3{32 * row_warps, 1, 1}, 0,
           arguments...);
}

// The number of rows that one thread adds up. If this number would take more than 65535 blocks, a thread adds up more
// rows.
constexpr std::int64_t partial_rows = 64;
inline std::int64_t partial_rows_of(std::int64_t rows) { return std::max(partial_rows, (rows + 65534) / 65535); }

// Computes sums over rows, with one thread per column. blockIdx.y selects a block of rows. f(row, column, sums) adds
// the row's values to sums[0 .. n) and may also write other results. The sums go to partial [n, blocks, columns].
template <int n, class T, class F>
__global__ void column_partials(F f, std::int64_t rows, std::int64_t columns, std::int64_t rows_of_block, T* partial) {
  const std::int64_t column = thread_number(), first = std::int64_t{blockIdx.y} * rows_of_block;
  if (column >= columns) return;
  T sums[n] = {};
  for (std::int64_t row = first; row < min(rows, first + rows_of_block); ++row) f(row, column, sums);
  for (int i = 0; i < n; ++i) partial[(i * std::int64_t{gridDim.y} + blockIdx.y) * columns + column] = sums[i];
}

// Computes y[0] = scale times the sum of x[0 .. n), in one block of 256 threads. Each thread adds every 256th element.
// Then the sums of the threads are added by a tree.
template <class T>
__global__ void add_all(const T* x, std::int64_t n, double scale, T* y) {
  T sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  const T all = block_sum(sum, shared<T>());
  if (threadIdx.x == 0) y[0] = static_cast<T>(all * scale);
}

template <class T>
void launch_add_all(const T* x, std::int64_t n, double scale, T* y) {
  launch(add_all<T>, dim3{1, 1, 1}, dim3{block_threads, 1, 1}, block_threads * sizeof(T), x, n, scale, y);
}

// The partial sums [blocks, columns] of a sum over rows, and the destination y of the sum. y is [columns], or [1] for
// the sum over all elements. The partial sums are added in the order of the blocks.
template <class T>
struct Parts {
  const T* first;
  std::int64_t blocks, columns;
  T* y;
  bool over_all;
};
constexpr int most_parts = 4;  // largest number of results per launch
template <class T>
struct AllParts {
  Parts<T> of[most_parts];
};

// Adds the partial sums of the result that blockIdx.y selects. One thread adds the partial sums of one column. For a
// sum over all elements, the first block adds all partial sums.
template <class T>
__global__ void add_parts(AllParts<T> parts) {
  const Parts<T> p = parts.of[blockIdx.y];
  if (!p.over_all) {
    const std::int64_t column = thread_number();
    if (column >= p.columns) return;
    T sum = 0;
    for (std::int64_t block = 0; block < p.blocks; ++block) sum += p.first[block * p.columns + column];
    p.y[column] = sum;
    return;
  }
  if (blockIdx.x > 0) return;  // the condition is the same for all threads of the block
  T sum = 0;
  for (std::int64_t i = threadIdx.x; i < p.blocks * p.columns; i += blockDim.x) sum += p.first[i];
  const T all = block_sum(sum, shared<T>());
  if (threadIdx.x == 0) *p.y = all;
}

// Collects sums over rows whose partial sums have been launched. finish() adds all partial sums, with one launch per
// four results.
template <class T>
class RowSums {
 public:
  // Returns memory for the partial sums [n, blocks, columns] of n sums. The sum of an undefined result is not computed.
  template <std::size_t n>
  T* parts(std::int64_t blocks, std::int64_t columns, const std::array<Out, n>& results) {
    const Out room(Array(Shape{static_cast<std::int64_t>(n), blocks, columns}, dtype_of<T>, Device::cuda));
    kept_.push_back(room);
    for (std::size_t i = 0; i < n; ++i)
      if (results[i].defined())
        all_.push_back({pointer<T>(room) + static_cast<std::int64_t>(i) * blocks * columns, blocks, columns,
                        elements<T>(results[i]), results[i].numel() != columns});
    return elements<T>(room);
  }
  // Launches column_partials(), which calls f(row, column, sums) for all elements. Returns the partial sums.
  template <int n, class F>
  const T* add(F f, std::int64_t rows, std::int64_t columns, const std::array<Out, n>& results) {
    const std::int64_t rows_of_block = partial_rows_of(rows), blocks = blocks_of(rows);
    T* const partial = parts(blocks, columns, results);
    if (columns > 0)
      launch(column_partials<n, T, F>,
             dim3{static_cast<unsigned>((columns + 127) / 128), static_cast<unsigned>(blocks), 1}, dim3{128, 1, 1}, 0,
             f, rows, columns, rows_of_block, partial);
    return partial;
  }
  static std::int64_t blocks_of(std::int64_t rows) {
    const std::int64_t rows_of_block = partial_rows_of(rows);
    return std::max<std::int64_t>((rows + rows_of_block - 1) / rows_of_block, 1);
  }
  void finish() {
    for (std::size_t first = 0; first < all_.size(); first += most_parts) {
      AllParts<T> table{};
      const std::size_t count = std::min<std::size_t>(most_parts, all_.size() - first);
      std::int64_t columns = 1;
      for (std::size_t i = 0; i < count; ++i) {
        table.of[i] = all_[first + i];
        count_bytes(table.of[i].blocks * table.of[i].columns * static_cast<std::int64_t>(sizeof(T)));
        if (!table.of[i].over_all) columns = std::max(columns, table.of[i].columns);
      }
      launch(
          add_parts<T>,
          dim3{static_cast<unsigned>((columns + block_threads - 1) / block_threads), static_cast<unsigned>(count), 1},
          dim3{block_threads, 1, 1}, block_threads * sizeof(T), table);
    }
    all_.clear();
    kept_.clear();
  }

 private:
  std::vector<Out> kept_;
  std::vector<Parts<T>> all_;
};

// Computes sums over rows. f(row, column, sums) adds to sums[i], and the total goes to results[i]. A result is
// [columns], or [1] for the sum over all elements. An undefined result is not computed.
template <int n, class T, class F>
void sum_columns(F f, std::int64_t rows, std::int64_t columns, const std::array<Out, n>& results) {
  RowSums<T> sums;
  sums.template add<n>(f, rows, columns, results);
  sums.finish();
}

// Returns the number of rows along the last axis, or 0 for an array without elements.
inline std::int64_t rows_of(const Array& x) { return x.numel() == 0 ? 0 : x.numel() / x.dim(-1); }

}  // namespace plumb::cuda
