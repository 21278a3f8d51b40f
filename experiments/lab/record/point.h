// Where a trial is among the axes of its study: a value for each, by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"

namespace plumb::lab {

// Integers and numbers of equal value are equal: {"epsilon", 0} is where epsilon is 0.0.
using AxisValue = std::variant<std::int64_t, double, std::string>;
std::string to_string(const AxisValue& value);  // as it is typed: "48", "0.001", "pre"
bool same(const AxisValue& a, const AxisValue& b);

class Point {
 public:
  using Entry = std::pair<std::string, AxisValue>;

  Point() = default;
  Point(std::initializer_list<Entry> entries) : entries_(entries) {}

  const std::vector<Entry>& entries() const { return entries_; }  // in the order of the axes
  const AxisValue* find(std::string_view axis) const;             // null if there is none
  void set(const std::string& axis, AxisValue value);             // the axis comes last if it is new
  Point without(std::string_view axis) const;
  // Whether it has all of `part`, with the same values.
  bool contains(const Point& part) const;
  bool operator==(const Point& other) const { return entries_.size() == other.entries_.size() && contains(other); }

  // The value on an axis. Throws Error if there is none, or it is of another type.
  template <class T>
  T get(std::string_view axis) const {
    const AxisValue* value = find(axis);
    check(value, "expected a trial with a value of {}, got {}", axis, label());
    if constexpr (std::is_same_v<T, std::string>) {
      if (const auto* text = std::get_if<std::string>(value)) return *text;
    } else {
      if (const auto* whole = std::get_if<std::int64_t>(value)) return static_cast<T>(*whole);
      if (const auto* number = std::get_if<double>(value); number && std::is_floating_point_v<T>)
        return static_cast<T>(*number);
    }
    fail(fmt::format("expected another type of value of {}, got {}", axis, to_string(*value)));
  }

  // "layerscale depth 48 lr 0.001 seed 0": values with their names, but for a text that comes first. What --dry-run
  // prints, progress shows and replay takes.
  std::string label() const;
  // The label as the name of a file: "layerscale-depth-48-lr-0.001-seed-0"; unusual characters as %2F, long ones cut
  // and hashed.
  std::string file_stem() const;

 private:
  std::vector<Entry> entries_;
};

}  // namespace plumb::lab
