#include "core/shape.h"

#include <algorithm>

#include "core/error.h"

namespace plumb {
namespace {

// Multiplies `product` by an extent of at least 0. Returns whether the result is at most max_numel.
bool multiply(std::int64_t& product, std::int64_t extent) {
  return !__builtin_mul_overflow(product, extent, &product) && product <= Shape::max_numel;
}

}  // namespace

Shape::Shape(std::initializer_list<std::int64_t> dims, const char* op)
    : Shape(std::span(dims.begin(), dims.size()), op) {}

Shape::Shape(std::span<const std::int64_t> dims, const char* op) : rank_(static_cast<int>(dims.size())) {
  check(dims.size() <= max_rank, "[{}] expected at most {} axes, got {}", op, max_rank, dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    check(dims[i] >= 0, "[{}] expected extents of at least 0, got {} on axis {}", op, dims[i], i);
    dims_[i] = dims[i];
  }
  std::int64_t n = 1;
  bool fits = true;
  for (std::int64_t d : dims) fits = fits && (d == 0 || multiply(n, d));
  check(fits, "[{}] expected fewer than 2^59 elements, got {}", op, *this);
}

std::int64_t Shape::numel() const {
  std::int64_t n = 1;
  for (std::int64_t d : *this) n *= d;
  return n;
}

int Shape::axis(int i) const {
  const int axis = i < 0 ? i + rank_ : i;
  check(axis >= 0 && axis < rank_, "[shape] expected an axis in -{}..{} of shape {}, got {}", rank_, rank_ - 1, *this,
        i);
  return axis;
}

Shape Shape::with(int i, std::int64_t extent, const char* op) const {
  std::array<std::int64_t, max_rank> dims = dims_;
  dims[static_cast<std::size_t>(axis(i))] = extent;
  return Shape(std::span(dims.data(), static_cast<std::size_t>(rank_)), op);
}

Shape Shape::without(int i) const {
  Shape s = *this;
  std::copy(s.dims_.begin() + axis(i) + 1, s.dims_.begin() + rank_, s.dims_.begin() + axis(i));
  s.dims_[static_cast<std::size_t>(--s.rank_)] = 0;
  return s;
}

Shape Shape::appended(std::int64_t extent, const char* op) const {
  std::vector<std::int64_t> dims(begin(), end());
  dims.push_back(extent);
  return Shape(dims, op);
}

std::int64_t extent_sum(const char* op, std::span<const std::int64_t> extents) {
  std::int64_t sum = 0;
  bool fits = true;
  for (const std::int64_t e : extents)
    fits = fits && e >= 0 && !__builtin_add_overflow(sum, e, &sum) && sum <= Shape::max_numel;
  check(fits, "[{}] expected extents of at least 0 whose sum is at most 2^59, got {}", op, fmt::join(extents, " + "));
  return sum;
}

std::int64_t extent_product(const char* op, std::span<const std::int64_t> extents) {
  std::int64_t product = 1;
  bool fits = true;
  for (const std::int64_t e : extents) fits = fits && e >= 0 && (e == 0 || multiply(product, e));
  check(fits, "[{}] expected extents of at least 0 whose product is at most 2^59, got {}", op,
        fmt::join(extents, " x "));
  return std::ranges::find(extents, 0) == extents.end() ? product : 0;
}

bool operator==(const Shape& a, const Shape& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

Shape broadcast(const Shape& a, const Shape& b, const char* op) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  for (int i = 1; i <= rank; ++i) {
    const std::int64_t m = i <= a.rank() ? a[-i] : 1;
    const std::int64_t n = i <= b.rank() ? b[-i] : 1;
    check(m == n || m == 1 || n == 1,
          "[{}] expected shapes that broadcast together, got {} and {} (axis -{}: {} and {})", op, a, b, i, m, n);
    dims[static_cast<std::size_t>(rank - i)] = m == 1 ? n : m;
  }
  return Shape(dims, op);
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.rank() > to.rank()) return false;
  for (int i = 1; i <= from.rank(); ++i)
    if (from[-i] != to[-i] && from[-i] != 1) return false;
  return true;
}

std::string to_string(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape.begin(), shape.end(), ", ")); }

}  // namespace plumb
