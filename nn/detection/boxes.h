// Boxes around the objects of an image: two forms, and the overlap of two boxes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "autograd/tensor.h"

namespace plumb::nn {

// A box by its corners: x0 <= x1 grow to the right, y0 <= y1 grow downwards. The unit is the caller's: pixels, or
// shares of the sides of the image.
struct Box {
  double x0 = 0, y0 = 0, x1 = 0, y1 = 0;

  // Return the sides and the area.
  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
  double area() const { return width() * height(); }
  bool operator==(const Box&) const = default;
};

// Returns the area that two boxes share.
inline double intersection(const Box& a, const Box& b) {
  return std::max(0.0, std::min(a.x1, b.x1) - std::max(a.x0, b.x0)) *
         std::max(0.0, std::min(a.y1, b.y1) - std::max(a.y0, b.y0));
}

// Returns the L1 distance of two boxes in their centre forms (centre x, centre y, width, height).
double l1_distance(const Box& a, const Box& b);

// The smallest area by which the functions below divide. A pair of boxes without area has the overlap 0 in place of
// 0 / 0.
inline constexpr double least_area = 1e-12;

// Returns the generalised IoU of two boxes (Rezatofighi et al. 2019), in [-1, 1]: the intersection over the union, less
// the share of the smallest box around both that the union leaves empty.
double generalized_iou(const Box& a, const Box& b);

// The same for tensors of corners [.., 4], whose shapes broadcast; the result is [..]. Gradients flow to both operands.
// If two edges of a pair are equal, each edge gets half of the gradient (maximum() in ops/elementwise.h).
Tensor generalized_iou(const Tensor& a, const Tensor& b);

// Converts boxes [.., 4] from the centre form (centre x, centre y, width, height) to corners (x0, y0, x1, y1), and
// back. Throws Error for another shape.
Tensor corners_of(const Tensor& centres);
Tensor centres_of(const Tensor& corners);

// An object that is known to be in an image.
struct Target {
  std::int64_t label = 0;  // the class, from 0
  Box box;                 // in shares of the sides of the image, in 0 .. 1, with x0 < x1 and y0 < y1
};
// The objects of each image of a batch. An image may have none.
using Targets = std::vector<std::vector<Target>>;

}  // namespace plumb::nn
