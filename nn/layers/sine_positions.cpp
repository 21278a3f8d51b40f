#include "nn/layers/sine_positions.h"

#include <cmath>
#include <numbers>
#include <span>

#include "core/error.h"

namespace plumb::nn {
namespace {

void check_dim(std::int64_t dim) {
  check(dim > 0 && dim % 4 == 0, "[sine_positions] expected a width that is a multiple of 4, got {}", dim);
}

// Writes the numbers of one coordinate: sin(u / t_0), cos(u / t_0), sin(u / t_1), ..
void write(std::span<double> to, double count, double last) {
  const double u = 2 * std::numbers::pi * count / (last + 1e-6);
  for (std::size_t i = 0; i < to.size(); i += 2) {
    const double t = std::pow(10000.0, static_cast<double>(i) / static_cast<double>(to.size()));
    to[i] = std::sin(u / t), to[i + 1] = std::cos(u / t);
  }
}

}  // namespace

Tensor sine_positions(std::int64_t height, std::int64_t width, std::int64_t dim) {
  check_dim(dim);
  extent_product("sine_positions", {height, width, dim});
  const auto half = static_cast<std::size_t>(dim / 2);
  std::vector<double> rows(static_cast<std::size_t>(height) * half), columns(static_cast<std::size_t>(width) * half),
      all;
  for (std::int64_t y = 0; y < height; ++y)
    write(std::span(rows).subspan(static_cast<std::size_t>(y) * half, half), static_cast<double>(y + 1),
          static_cast<double>(height));
  for (std::int64_t x = 0; x < width; ++x)
    write(std::span(columns).subspan(static_cast<std::size_t>(x) * half, half), static_cast<double>(x + 1),
          static_cast<double>(width));
  for (std::int64_t y = 0; y < height; ++y)
    for (std::int64_t x = 0; x < width; ++x) {
      const auto row = rows.begin() + y * (dim / 2), column = columns.begin() + x * (dim / 2);
      all.insert(all.end(), row, row + dim / 2);
      all.insert(all.end(), column, column + dim / 2);
    }
  return tensor(all, {height * width, dim});
}

Tensor sine_positions(const Tensor& keep, std::int64_t dim) {
  check_dim(dim);
  check(keep.defined() && keep.dtype() == DType::u8 && keep.shape().rank() == 3,
        "[sine_positions] expected a u8 mask [B, height, width], got {}", describe(keep));
  const std::int64_t B = keep.dim(0), H = keep.dim(1), W = keep.dim(2);
  extent_product("sine_positions", {B, H, W, dim});
  const std::vector<double> kept = keep.values();
  const auto half = static_cast<std::size_t>(dim / 2);
  std::vector<double> all(static_cast<std::size_t>(B * H * W * dim));
  // The counts of kept cells in column x down to row y, and in row y up to column x.
  std::vector<double> down(static_cast<std::size_t>(H * W)), right(down.size());
  for (std::int64_t b = 0; b < B; ++b) {
    const auto at = [&](std::int64_t y, std::int64_t x) { return static_cast<std::size_t>(y * W + x); };
    for (std::int64_t y = 0; y < H; ++y)
      for (std::int64_t x = 0; x < W; ++x) {
        const double here = kept[static_cast<std::size_t>(b * H * W) + at(y, x)];
        down[at(y, x)] = here + (y > 0 ? down[at(y - 1, x)] : 0);
        right[at(y, x)] = here + (x > 0 ? right[at(y, x - 1)] : 0);
      }
    for (std::int64_t y = 0; y < H; ++y)
      for (std::int64_t x = 0; x < W; ++x) {
        const std::span<double> cell(all.data() + ((b * H + y) * W + x) * dim, static_cast<std::size_t>(dim));
        write(cell.first(half), down[at(y, x)], down[at(H - 1, x)]);
        write(cell.last(half), right[at(y, x)], right[at(y, W - 1)]);
      }
  }
  return tensor(all, {B, H * W, dim}, {defaults().dtype, keep.device()});
}

}  // namespace plumb::nn
