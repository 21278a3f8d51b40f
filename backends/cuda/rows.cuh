// Work on rows: a warp to a row, its lanes stepping through the columns together; and sums over rows, by column.
#pragma once

#include <algorithm>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/warp.cuh"

namespace plumb::cuda {

constexpr int row_warps = 4;  // rows of a block

// The row of this warp, in a grid by launch_rows.
__device__ __forceinline__ std::int64_t warp_row() { return std::int64_t{blockIdx.x} * row_warps + threadIdx.x / 32; }
__device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x % 32); }

// A warp for each row; whole warps leave out the rows beyond the last.
template <class... Parameters, class... Arguments>
void launch_rows(std::int64_t rows, void (*kernel)(Parameters...), Arguments... arguments) {
  if (rows > 0) launch(kernel, dim3{static_cast<unsigned>((rows + row_warps - 1) / row_warps), 1, 1}, dim3{32 * row_warps, 1, 1}, 0, arguments...);
}

constexpr std::int64_t partial_rows = 64;  // that a thread adds up

// Adds f(row, column, sums) for the rows of block y into sums[n], a thread to a column, and writes partial [n, blocks, columns].
template <int n, class T, class F>
__global__ void column_partials(F f, std::int64_t rows, std::int64_t columns, std::int64_t rows_of_block, T* partial) {
  const std::int64_t column = thread_number(), first = std::int64_t{blockIdx.y} * rows_of_block;
  if (column >= columns) return;
  T sums[n] = {};
  for (std::int64_t row = first; row < min(rows, first + rows_of_block); ++row) f(row, column, sums);
  for (int i = 0; i < n; ++i) partial[(i * std::int64_t{gridDim.y} + blockIdx.y) * columns + column] = sums[i];
}

// y[column] = the sum over blocks of partial [blocks, columns], in their order.
template <class T>
__global__ void add_partials(const T* partial, std::int64_t blocks, std::int64_t columns, T* y) {
  const std::int64_t column = thread_number();
  if (column >= columns) return;
  T sum = 0;
  for (std::int64_t block = 0; block < blocks; ++block) sum += partial[block * columns + column];
  y[column] = sum;
}

// y[0] = the sum of x[0 .. n), by one block: each thread adds every 256th, then they are added by a tree.
template <class T>
__global__ void add_all(const T* x, std::int64_t n, double scale, T* y) {
  T* const sums = shared<T>();
  T sum = 0;
  for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += x[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) y[0] = static_cast<T>(sums[0] * scale);
}

template <class T>
void launch_add_all(const T* x, std::int64_t n, double scale, T* y) {
  launch(add_all<T>, dim3{1, 1, 1}, dim3{block_threads, 1, 1}, block_threads * sizeof(T), x, n, scale, y);
}

// Sums over rows: results[i] [columns], or [1] for the sum over all elements, gets what f (as above) adds into sums[i]; an undefined one is not
// wanted.
template <int n, class T, class F>
void sum_columns(F f, std::int64_t rows, std::int64_t columns, const std::array<Out, n>& results) {
  if (columns == 0) {
    for (const Out& y : results)
      if (y.defined()) fill(0, y);
    return;
  }
  const std::int64_t rows_of_block = std::max(partial_rows, (rows + 65534) / 65535),
                     blocks = std::max<std::int64_t>((rows + rows_of_block - 1) / rows_of_block, 1);
  const Out partial(Array(Shape{n, blocks, columns}, dtype_of<T>, Device::cuda));
  launch(column_partials<n, T, F>, dim3{static_cast<unsigned>((columns + 127) / 128), static_cast<unsigned>(blocks), 1}, dim3{128, 1, 1}, 0, f, rows,
         columns, rows_of_block, elements<T>(partial));
  for (int i = 0; i < n; ++i) {
    const Out& y = results[static_cast<std::size_t>(i)];
    if (!y.defined()) continue;
    const T* const first = elements<T>(partial) + i * blocks * columns;
    if (y.numel() == columns)
      launch_for(columns, add_partials<T>, first, blocks, columns, elements<T>(y));
    else
      launch_add_all<T>(first, blocks * columns, 1.0, elements<T>(y));
  }
}

// Rows of the last axis, none of an array without elements.
inline std::int64_t rows_of(const Array& x) { return x.numel() == 0 ? 0 : x.numel() / x.dim(-1); }

}  // namespace plumb::cuda
