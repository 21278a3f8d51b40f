// Shape: the extents of an array.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace plumb {

// The extents of an array, outermost first; [] is a scalar. The constructors, with() and appended() throw Error
// "[op] expected ..., got ..." for more than max_rank axes, for a negative extent, and if the product of the extents
// other than 0 is above max_numel. Therefore the product of any extents of one shape does not overflow.
class Shape {
 public:
  // The largest number of axes, and of elements.
  static constexpr int max_rank = 8;
  static constexpr std::int64_t max_numel = std::int64_t{1} << 59;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims, const char* op = "shape");
  explicit Shape(std::span<const std::int64_t> dims, const char* op = "shape");

  // The number of axes.
  int rank() const { return rank_; }
  // The number of elements: the product of the extents.
  std::int64_t numel() const;
  // The extent of axis i. Negative i counts from the end. Throws Error if i is out of range.
  std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(axis(i))]; }
  // Axis i as a non-negative index. Negative i counts from the end. Throws Error if i is out of range.
  int axis(int i) const;

  // Iterators over the extents.
  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

  // This shape with the extent of axis i replaced. Throws Error if i is out of range.
  Shape with(int i, std::int64_t extent, const char* op = "shape") const;
  // This shape without axis i. Throws Error if i is out of range.
  Shape without(int i) const;
  // This shape with one more axis at the end.
  Shape appended(std::int64_t extent, const char* op = "shape") const;

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

// The sum and the product of extents, for an extent that an op or a layer computes from other numbers. They throw Error
// "[op] expected ..., got ..." if a number is negative or the result is above Shape::max_numel.
std::int64_t extent_sum(const char* op, std::span<const std::int64_t> extents);
std::int64_t extent_product(const char* op, std::span<const std::int64_t> extents);
inline std::int64_t extent_sum(const char* op, std::initializer_list<std::int64_t> extents) {
  return extent_sum(op, std::span(extents.begin(), extents.size()));
}
inline std::int64_t extent_product(const char* op, std::initializer_list<std::int64_t> extents) {
  return extent_product(op, std::span(extents.begin(), extents.size()));
}

// The shape to which both shapes broadcast by NumPy's rules. Throws Error "[op] expected shapes that broadcast
// together, got ..."
Shape broadcast(const Shape& a, const Shape& b, const char* op);
// Whether an array of shape `from` broadcasts to `to` by NumPy's rules.
bool broadcasts_to(const Shape& from, const Shape& to);

// The shape as text, such as "[64, 65, 192]".
std::string to_string(const Shape& shape);

}  // namespace plumb

// Formats a Shape with fmt as to_string() does.
template <>
struct fmt::formatter<plumb::Shape> : fmt::formatter<std::string_view> {
  auto format(const plumb::Shape& shape, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(plumb::to_string(shape), context);
  }
};
