// The last step of a sum over rows. Many kernels use this step for the gradients of biases, gains and gates.
#pragma once

#include <cstdint>

namespace plumb::cpu {

// Adds the partial sums of the blocks: y [columns] = the sum of partial [blocks, columns] over the blocks. The sums are
// in f64, on the calling thread.
void add_partials(const float* partial, std::int64_t blocks, std::int64_t columns, float* y);

}  // namespace plumb::cpu
