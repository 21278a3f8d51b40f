// Iterates over the elements of a result and of its operands. Each operand has its own strides. A stride may be 0 (a
// broadcast axis), and strides may be permuted. If the strides of all operands permit, neighbouring axes are merged
// into one axis.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "core/shape.h"

namespace plumb {

using Strides = std::array<std::int64_t, Shape::max_rank>;  // one stride per axis, outermost first, in elements

// Returns the strides of a dense array of shape `shape` that is broadcast to `result`. Broadcast axes get the stride 0.
inline Strides broadcast_strides(const Shape& shape, const Shape& result) {
  Strides strides{};
  std::int64_t dense = 1;
  for (int axis = 1; axis <= shape.rank(); ++axis) {
    if (shape[-axis] != 1) strides[static_cast<std::size_t>(result.rank() - axis)] = dense;
    dense *= shape[-axis];
  }
  return strides;
}

// A result and its `operands` operands, with their axes merged.
template <std::size_t operands>
struct Walk {
  using Offsets = std::array<std::int64_t, operands>;

  std::int64_t inner = 1;  // extent of the innermost merged axis
  Offsets inner_stride{};
  std::size_t outer_rank = 0;
  std::array<std::int64_t, Shape::max_rank> extent{};  // extents of the outer axes, innermost first
  std::array<Offsets, Shape::max_rank> stride{};

  // Merges the axes of `result`. `strides` holds the strides of each operand along the axes of `result`.
  Walk(const Shape& result, const std::array<Strides, operands>& strides) {
    bool first = true;
    for (int axis = result.rank() - 1; axis >= 0; --axis) {
      const std::int64_t n = result[axis];
      if (n == 1) continue;
      Offsets s;
      for (std::size_t k = 0; k < operands; ++k) s[k] = strides[k][static_cast<std::size_t>(axis)];
      if (first) {
        inner = n, inner_stride = s, first = false;
        continue;
      }
      std::int64_t& last = outer_rank ? extent[outer_rank - 1] : inner;
      const Offsets& last_stride = outer_rank ? stride[outer_rank - 1] : inner_stride;
      bool merges = true;
      for (std::size_t k = 0; k < operands; ++k) merges = merges && s[k] == last_stride[k] * last;
      if (merges)
        last *= n;
      else
        extent[outer_rank] = n, stride[outer_rank++] = s;
    }
  }

  // Splits the elements [begin, end) of the result into runs along the innermost merged axis. Calls f(n, offset in the
  // result, offsets in the operands) for each run of n elements.
  template <class F>
  void run(std::int64_t begin, std::int64_t end, F&& f) const {
    std::array<std::int64_t, Shape::max_rank> coordinate{};
    Offsets row{};
    std::int64_t rest = begin / inner, column = begin % inner;
    for (std::size_t i = 0; i < outer_rank; ++i) {
      coordinate[i] = rest % extent[i];
      rest /= extent[i];
      for (std::size_t k = 0; k < operands; ++k) row[k] += coordinate[i] * stride[i][k];
    }
    while (begin < end) {
      const std::int64_t n = std::min(inner - column, end - begin);
      Offsets offsets = row;
      for (std::size_t k = 0; k < operands; ++k) offsets[k] += column * inner_stride[k];
      f(n, begin, offsets);
      begin += n;
      column = 0;
      for (std::size_t i = 0; i < outer_rank; ++i) {
        for (std::size_t k = 0; k < operands; ++k) row[k] += stride[i][k];
        if (++coordinate[i] < extent[i]) break;
        for (std::size_t k = 0; k < operands; ++k) row[k] -= extent[i] * stride[i][k];
        coordinate[i] = 0;
      }
    }
  }
};

}  // namespace plumb
