// Maps an element of a result to the elements of its operands. Each operand has its own strides. A stride may be 0 (a
// broadcast axis), and strides may be permuted.
#pragma once

#include <cuda_runtime.h>

#include "backends/walk.h"

namespace plumb::cuda {

// The offsets of one element in each operand.
template <int operands>
struct Offsets {
  std::int64_t of[operands];
};

// The strides of the operands, passed to a kernel by value. If the strides of all operands permit, neighbouring axes
// are merged into one axis.
template <int operands>
class Index {
 public:
  // Takes dense operands with these shapes, broadcast to `result`.
  Index(const Shape& result, const std::array<const Shape*, operands>& shapes)
      : Index(result, strides_of(result, shapes)) {}
  // Takes operands with these strides along the axes of `result`.
  Index(const Shape& result, const std::array<Strides, operands>& strides) {
    const Walk<operands> walk(result, strides);
    rank_ = static_cast<int>(walk.outer_rank) + 1;
    extent_[0] = walk.inner;
    for (int k = 0; k < operands; ++k) stride_[k][0] = walk.inner_stride[static_cast<std::size_t>(k)];
    for (int r = 1; r < rank_; ++r) {
      const auto outer = static_cast<std::size_t>(r - 1);
      extent_[r] = walk.extent[outer];
      for (int k = 0; k < operands; ++k) stride_[k][r] = walk.stride[outer][static_cast<std::size_t>(k)];
    }
  }

  // flat() returns whether each operand either has the layout of the result or is one element. If flat() is true,
  // step(operand) returns the distance between neighbouring elements of the operand, 1 or 0.
  bool flat() const {
    for (int k = 0; k < operands; ++k)
      if (stride_[k][0] > 1) return false;
    return rank_ == 1;
  }
  int step(int operand) const { return static_cast<int>(stride_[operand][0]); }

  // Returns the offsets for element i of the result.
  __device__ __forceinline__ Offsets<operands> at(std::int64_t i) const {
    Offsets<operands> offsets{};
    for (int r = 0; r < rank_; ++r) {
      const std::int64_t coordinate = r + 1 == rank_ ? i : i % extent_[r];
      i /= extent_[r];
      for (int k = 0; k < operands; ++k) offsets.of[k] += coordinate * stride_[k][r];
    }
    return offsets;
  }

 private:
  static std::array<Strides, operands> strides_of(const Shape& result,
                                                  const std::array<const Shape*, operands>& shapes) {
    std::array<Strides, operands> strides;
    for (std::size_t k = 0; k < operands; ++k) strides[k] = broadcast_strides(*shapes[k], result);
    return strides;
  }

  int rank_ = 1;  // number of merged axes, innermost first in the arrays below
  std::int64_t extent_[Shape::max_rank + 1] = {1};
  std::int64_t stride_[operands][Shape::max_rank + 1] = {};
};

}  // namespace plumb::cuda
