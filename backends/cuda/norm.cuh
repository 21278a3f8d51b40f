// The backward pass of the norms, for kernels that add other work to the launch of this pass.
#pragma once

#include "backends/cuda/rows.cuh"

namespace plumb::cuda {

// The operands and results for rows [rows, D]. If mean is null, the norm is RMS norm. Pointers to results may be null.
// S is T or bf16.
template <class T, class S>
struct NormBackward {
  const T *dy, *x, *gamma, *mean, *rstd;
  T* dx;
  const T* added;  // a gradient to add to dx, or null; may be dx itself
  S* y;            // receives the recomputed output of the norm
};

// The columns of x [rows, columns] to sum into partial [RowSums::blocks_of(rows), columns].
template <class T>
struct ColumnSums {
  const T* x = nullptr;
  std::int64_t rows = 0, columns = 0, rows_of_block = 0;
  T* partial = nullptr;
};

// Launches the backward pass. The later call of sums.finish() writes dgamma and dbeta. beta is needed only if n.y is
// wanted. The same launch computes the column sums `also`.
template <class T, class S>
void norm_backward(const NormBackward<T, S>& n, const T* beta, std::int64_t rows, std::int64_t D, const Out& dgamma,
                   const Out& dbeta, RowSums<T>& sums, ColumnSums<T> also);

}  // namespace plumb::cuda
