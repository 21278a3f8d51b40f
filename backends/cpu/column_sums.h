// The last step of a sum over rows. Many kernels use it, for gradients of biases, gains and gates.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// Adds partial sums, one row per block: y [columns] = sum of partial [blocks, columns] over the blocks. Adds in f64, on
// the calling thread.
void add_partials(const float* partial, std::int64_t blocks, std::int64_t columns, float* y);

}  // namespace plumb::cpu
