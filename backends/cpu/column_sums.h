// Sums over rows: many kernels end in one (gradients of biases, gains and gates).
#pragma once

#include <cstdint>

#include "core/bfloat16.h"

namespace plumb::cpu {

// y [columns] = sum over the rows of x [rows, columns]. Partial sums of fixed blocks of rows, then those in order.
void sum_rows(const float* x, std::int64_t rows, std::int64_t columns, float* y);
void sum_rows(const bfloat16* x, std::int64_t rows, std::int64_t columns, float* y);

// The last step of such a sum: y [columns] = sum of partial [blocks, columns], in f64, on the calling thread.
void add_partials(const float* partial, std::int64_t blocks, std::int64_t columns, float* y);

}  // namespace plumb::cpu
