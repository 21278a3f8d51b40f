// Options of ops that kernels read as well: the form of GELU, windows of convolutions and pools, and DropKey.
#pragma once

#include <cstdint>

#include "core/enum_names.h"
#include "core/shape.h"

namespace plumb {

// The forms of GELU: x Phi(x) by erf, or its tanh approximation.
enum class Gelu { erf, tanh };

// The geometry of a 2-d convolution, the same along both axes: the input gets `padding` zeros on each side, and
// the filter moves by `stride`.
struct Conv2dGeometry {
  std::int64_t stride = 1, padding = 0;
  // The extent of the output for an input of extent `extent` and a filter of extent `kernel`.
  std::int64_t output(std::int64_t extent, std::int64_t kernel) const {
    return (extent + 2 * padding - kernel) / stride + 1;
  }
};

// Options of 2-d pooling: windows of kernel x kernel pixels, `stride` apart, over an image with `padding` on each side.
// Stride 0 means a stride of `kernel`, so that windows do not overlap.
struct Pool2dOptions {
  std::int64_t kernel = 2, stride = 0, padding = 0;
  // The distance between windows.
  std::int64_t step() const { return stride > 0 ? stride : kernel; }
  // The number of windows along an axis of extent `extent`.
  std::int64_t output(std::int64_t extent) const { return (extent + 2 * padding - kernel) / step() + 1; }
};

// The result of attention for a query that lost every allowed key to DropKey (an empty row). The keep mask and causal
// attention decide which keys are allowed. A query without an allowed key has output 0 and gradient 0 under every rule.
enum class EmptyRow {
  keep_all,  // the row ignores DropKey's mask
  zero,      // output 0 and gradient 0
  paper      // uniform probabilities over the allowed keys; the scores count as constants
};
constexpr auto names_of(EmptyRow) { return std::array{"keep_all", "zero", "paper"}; }

// The keys that one draw drops. The shapes block and cross draw seeds on the grid of patches; each
// seed drops the cells around it.
enum class DropShape {
  plain,  // a draw drops one key
  block,  // the window x window square around a seed, or nothing if this square leaves the grid (paper: window 3)
  cross   // all rows and columns within window / 2 of a seed (paper: window 1)
};
constexpr auto names_of(DropShape) { return std::array{"plain", "block", "cross"}; }

// The rows that share a mask.
enum class DropSharing {
  per_entry,  // one mask for each (batch, head, query), as in the paper
  heads,      // one mask for all heads of a (batch, query)
  column      // one mask for all queries of a (batch, head)
};
constexpr auto names_of(DropSharing) { return std::array{"per_entry", "heads", "column"}; }

// The grid of patches: the last height * width keys, row by row. Keys before the grid, such as that of a class token,
// are not on the grid, and the shapes block and cross never drop such keys. 0 x 0 means that there is no grid. Each
// side is below 65536.
struct KeyGrid {
  std::int64_t height = 0, width = 0;
  // The number of cells of the grid; 0 if there is no grid. Throws Error if a side is negative or the number is above
  // Shape::max_numel.
  std::int64_t cells() const { return extent_product("drop_key", {height, width}); }
};

}  // namespace plumb
