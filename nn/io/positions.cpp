#include "nn/io/positions.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "nn/io/pretrained.h"

namespace plumb::nn {
namespace {

// The cubic kernel by Keys (a = -0.5), which antialiased resizing uses.
double cubic(double x) {
  x = std::abs(x);
  if (x < 1) return (1.5 * x - 2.5) * x * x + 1;
  return x < 2 ? ((-0.5 * x + 2.5) * x - 4) * x + 2 : 0;
}

// Returns weights [to, from] that resize a line of `from` values to `to` values.
std::vector<double> line_weights(std::int64_t from, std::int64_t to) {
  std::vector<double> weights(static_cast<std::size_t>(to * from), 0);
  const double scale = static_cast<double>(from) / static_cast<double>(to), wide = std::max(scale, 1.0);
  for (std::int64_t i = 0; i < to; ++i) {
    const double centre = scale * (static_cast<double>(i) + 0.5);
    const auto first = std::max<std::int64_t>(0, static_cast<std::int64_t>(centre - 2 * wide + 0.5));
    const auto last = std::min(from, static_cast<std::int64_t>(centre + 2 * wide + 0.5));
    double sum = 0;
    for (std::int64_t j = first; j < last; ++j)
      sum += weights[static_cast<std::size_t>(i * from + j)] = cubic((static_cast<double>(j) - centre + 0.5) / wide);
    for (std::int64_t j = first; j < last; ++j) weights[static_cast<std::size_t>(i * from + j)] /= sum;
  }
  return weights;
}

bool is_square(std::int64_t n) {
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(n)));
  return n > 0 && side * side == n;
}

}  // namespace

std::int64_t side_of(std::int64_t tokens, const std::string& what) {
  const std::int64_t side = std::llround(std::sqrt(static_cast<double>(tokens)));
  check(side > 0 && side * side == tokens, "{}: expected positions of a square grid, got {} positions", what, tokens);
  return side;
}

bool lacks_token_position(std::int64_t positions, bool token) {
  return token && is_square(positions) && !is_square(positions - 1);
}

Tensor resized_positions(const Tensor& positions, std::int64_t prefix, std::int64_t side) {
  check(positions.shape().rank() == 3 && positions.dim(0) == 1 && prefix >= 0 && positions.dim(1) > prefix && side > 0,
        "[resized_positions] expected positions [1, {} + a a, D] and a side above 0, got {} and side {}", prefix,
        positions.shape(), side);
  const std::int64_t from = side_of(positions.dim(1) - prefix, "[resized_positions]"), D = positions.dim(2);
  const std::vector<double> given = positions.values(), weights = line_weights(from, side);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  // The grid is resized first along x, to [from, side, D], then along y, to [side, side, D].
  std::vector<double> across(at(from * side * D), 0), all(given.begin(), given.begin() + prefix * D);
  all.resize(at((prefix + side * side) * D), 0);
  for (std::int64_t y = 0; y < from; ++y)
    for (std::int64_t x = 0; x < side; ++x)
      for (std::int64_t k = 0; k < from; ++k)
        for (std::int64_t d = 0; d < D; ++d)
          across[at((y * side + x) * D + d)] += weights[at(x * from + k)] * given[at((prefix + y * from + k) * D + d)];
  for (std::int64_t y = 0; y < side; ++y)
    for (std::int64_t k = 0; k < from; ++k)
      for (std::int64_t i = 0; i < side * D; ++i)
        all[at((prefix + y * side) * D + i)] += weights[at(y * from + k)] * across[at(k * side * D + i)];
  return tensor(all, {1, prefix + side * side, D}, {.dtype = positions.dtype(), .device = positions.device()});
}

}  // namespace plumb::nn
