// Shape: the extents of an array, outermost first. [] is a scalar.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace plumb {

class Shape {
 public:
  static constexpr int max_rank = 8;

  Shape() = default;
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t numel() const;
  // Extent of axis i; negative i counts from the end. Throws when out of range.
  std::int64_t operator[](int i) const { return dims_[static_cast<std::size_t>(axis(i))]; }
  // i as a non-negative axis index; throws when out of range.
  int axis(int i) const;

  const std::int64_t* begin() const { return dims_.data(); }
  const std::int64_t* end() const { return dims_.data() + rank_; }

  Shape with(int i, std::int64_t extent) const;  // the same shape with axis i replaced
  Shape without(int i) const;                    // axis i removed
  Shape appended(std::int64_t extent) const;     // one more axis at the end

  friend bool operator==(const Shape& a, const Shape& b);

 private:
  std::array<std::int64_t, max_rank> dims_{};
  int rank_ = 0;
};

// The shape both broadcast to under NumPy's rules; throws "[op] cannot broadcast a with b".
Shape broadcast(const Shape& a, const Shape& b, const char* op);
// Whether `from` can be broadcast to `to`.
bool broadcasts_to(const Shape& from, const Shape& to);

std::string to_string(const Shape& shape);  // "[64, 65, 192]"

}  // namespace plumb

template <>
struct fmt::formatter<plumb::Shape> : fmt::formatter<std::string_view> {
  auto format(const plumb::Shape& shape, fmt::format_context& context) const {
    return fmt::formatter<std::string_view>::format(plumb::to_string(shape), context);
  }
};
