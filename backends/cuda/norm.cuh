// The backward pass of the norms, for those that put more into its launches.
#pragma once

#include "backends/cuda/rows.cuh"

namespace plumb::cuda {

// Of rows [rows, D]. mean null: RMS norm. What is written may be null. S: T, or bf16.
template <class T, class S>
struct NormBackward {
  const T *dy, *x, *gamma, *mean, *rstd;
  T* dx;
  const T* added;  // a gradient that is added to dx, which it may be
  S* y;            // the layer norm again
};

// The sums of the columns of x [rows, columns], into partial [RowSums::blocks_of(rows), columns].
template <class T>
struct ColumnSums {
  const T* x = nullptr;
  std::int64_t rows = 0, columns = 0, rows_of_block = 0;
  T* partial = nullptr;
};

// dgamma and dbeta are written when `sums` are finished. beta is needed for y alone. `also` is done by the same launch.
template <class T, class S>
void norm_backward(const NormBackward<T, S>& n, const T* beta, std::int64_t rows, std::int64_t D, const Out& dgamma,
                   const Out& dbeta, RowSums<T>& sums, ColumnSums<T> also);

}  // namespace plumb::cuda
