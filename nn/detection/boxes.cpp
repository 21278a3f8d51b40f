#include "nn/detection/boxes.h"

#include <cmath>

#include "autograd/ops.h"

namespace plumb::nn {
namespace {

// The four columns of boxes [.., 4], each [..].
Tensors columns(const char* op, const Tensor& boxes) {
  detail::check_float(op, boxes);
  check(boxes.shape().rank() >= 1 && boxes.dim(-1) == 4, "[{}] expected boxes [.., 4], got {}", op, boxes.shape());
  return unbind(boxes, -1);
}

// Corners of a side: low and high.
struct Side {
  Tensor low, high;
  Tensor length() const { return high - low; }
};
Side shared(const Side& a, const Side& b) { return {maximum(a.low, b.low), minimum(a.high, b.high)}; }
Side around(const Side& a, const Side& b) { return {minimum(a.low, b.low), maximum(a.high, b.high)}; }

}  // namespace

double l1_distance(const Box& a, const Box& b) {
  const auto of_side = [](double a0, double a1, double b0, double b1) {
    return std::abs((a0 + a1 - b0 - b1) / 2) + std::abs(a1 - a0 - b1 + b0);
  };
  return of_side(a.x0, a.x1, b.x0, b.x1) + of_side(a.y0, a.y1, b.y0, b.y1);
}

double generalized_iou(const Box& a, const Box& b) {
  const double both = intersection(a, b), either = std::max(a.area() + b.area() - both, least_area);
  const double hull = std::max(
      (std::max(a.x1, b.x1) - std::min(a.x0, b.x0)) * (std::max(a.y1, b.y1) - std::min(a.y0, b.y0)), least_area);
  return both / either - (hull - either) / hull;
}

Tensor generalized_iou(const Tensor& a, const Tensor& b) {
  const Tensors p = columns("generalized_iou", a), q = columns("generalized_iou", b);
  const Side ax{p[0], p[2]}, ay{p[1], p[3]}, bx{q[0], q[2]}, by{q[1], q[3]};
  const Tensor both = maximum(shared(ax, bx).length(), 0) * maximum(shared(ay, by).length(), 0);
  const Tensor either = maximum(ax.length() * ay.length() + bx.length() * by.length() - both, least_area);
  const Tensor hull = maximum(around(ax, bx).length() * around(ay, by).length(), least_area);
  return both / either + either / hull - 1;
}

Tensor corners_of(const Tensor& centres) {
  const Tensors c = columns("corners_of", centres);
  return stack({c[0] - c[2] / 2, c[1] - c[3] / 2, c[0] + c[2] / 2, c[1] + c[3] / 2}, -1);
}

Tensor centres_of(const Tensor& corners) {
  const Tensors c = columns("centres_of", corners);
  return stack({(c[0] + c[2]) / 2, (c[1] + c[3]) / 2, c[2] - c[0], c[3] - c[1]}, -1);
}

}  // namespace plumb::nn
