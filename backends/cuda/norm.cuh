// The backward pass of the norms, for kernels that add other work to its launches.
#pragma once

#include "backends/cuda/rows.cuh"

namespace plumb::cuda {

// The operands and results for rows [rows, D]. If mean is null, the norm is RMS norm. Result pointers may be null. S is
// T or bf16.
template <class T, class S>
struct NormBackward {
  const T *dy, *x, *gamma, *mean, *rstd;
  T* dx;
  const T* added;  // a gradient to add to dx; may be dx itself
  S* y;            // the norm's output, recomputed
};

// A request to sum the columns of x [rows, columns] into partial [RowSums::blocks_of(rows), columns].
template <class T>
struct ColumnSums {
  const T* x = nullptr;
  std::int64_t rows = 0, columns = 0, rows_of_block = 0;
  T* partial = nullptr;
};

// Launches the backward pass. dgamma and dbeta are written by sums.finish(). beta is needed only if n.y is wanted. The
// same launch computes the column sums `also`.
template <class T, class S>
void norm_backward(const NormBackward<T, S>& n, const T* beta, std::int64_t rows, std::int64_t D, const Out& dgamma,
                   const Out& dbeta, RowSums<T>& sums, ColumnSums<T> also);

}  // namespace plumb::cuda
