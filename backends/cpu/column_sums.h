// The end of a sum over rows: many kernels have one (gradients of biases, gains and gates).
#pragma once

#include <cstdint>

namespace plumb::cpu {

// y [columns] = sum of partial [blocks, columns], those of the blocks of rows, in f64, on the calling thread.
void add_partials(const float* partial, std::int64_t blocks, std::int64_t columns, float* y);

}  // namespace plumb::cpu
