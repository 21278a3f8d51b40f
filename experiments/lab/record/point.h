// The point of a trial: one named value for each axis of the study.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/error.h"

namespace plumb::lab {

// A value on an axis.
using AxisValue = std::variant<std::int64_t, double, std::string>;
std::string to_string(const AxisValue& value);  // the value as typed on a command line: "48", "0.001", "pre"
// Whether two values are equal. An integer equals a double with the same value: 0 and 0.0. Two doubles are equal if
// both print alike with six digits: 0.1 + 0.2 and 0.3.
bool same(const AxisValue& a, const AxisValue& b);

template <class T>
class Axis;

// The values of a trial on the axes of a study, by name. Two points are equal if they have the same axes with the same
// values, in any order. A point with some of the axes is a condition on trials; axes make conditions (study/axis.h):
//   depth == 24 && gate == "layerscale"
class Point {
 public:
  using Entry = std::pair<std::string, AxisValue>;  // the name of an axis and a value

  Point() = default;
  Point(std::initializer_list<Entry> entries) : entries_(entries) {}

  const std::vector<Entry>& entries() const { return entries_; }  // entries in the order of the axes
  const AxisValue* find(std::string_view axis) const;             // null if the point does not have the axis
  void set(const std::string& axis, AxisValue value);  // replaces the value, or appends the axis if the axis is new
  Point without(std::string_view axis) const;          // a copy of the point without this axis
  // Whether the point has all axes of `part` with the same values as `part`.
  bool contains(const Point& part) const;
  bool operator==(const Point& other) const { return entries_.size() == other.entries_.size() && contains(other); }
  // Both conditions. Throws Error if they name different values on one axis.
  friend Point operator&&(Point a, const Point& b);
  // The value on an axis of a study. Throws Error if the point does not have the axis.
  template <class T>
  T operator[](const Axis<T>& axis) const {
    return axis.value_in(*this);
  }

  // The value on an axis. A value that is an integer may be read as a floating-point type. Throws Error if the point
  // does not have the axis or if the value on the axis has another type.
  template <class T>
  T get(std::string_view axis) const {
    const AxisValue* value = find(axis);
    check(value, "expected a trial with the axis {}, got {}", axis, label());
    if constexpr (std::is_same_v<T, std::string>) {
      if (const auto* text = std::get_if<std::string>(value)) return *text;
    } else {
      if (const auto* whole = std::get_if<std::int64_t>(value)) {
        if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
          check(std::in_range<T>(*whole), "expected a value from {} to {} on the axis {}, got {}",
                std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), axis, *whole);
        return static_cast<T>(*whole);
      }
      if (const auto* number = std::get_if<double>(value); number && std::is_floating_point_v<T>)
        return static_cast<T>(*number);
    }
    fail(fmt::format("expected a value of another type on the axis {}, got {}", axis, to_string(*value)));
  }

  // The label of the trial, such as "layerscale depth 48 lr 0.001 seed 0". --dry-run prints the label, progress shows
  // it, and --replay takes it. Each value follows the name of its axis, but a first value that is a text has no name.
  std::string label() const;
  // The label as a file name, such as "layerscale-depth-48-lr-0.001-seed-0". Unusual characters are escaped as in %2F.
  // A name of more than 160 bytes is shortened and gets a hash.
  std::string file_stem() const;

 private:
  std::vector<Entry> entries_;
};

// An entry that marks a trial of a search for a learning rate (study/rate_search.h). The trial has this number of
// steps.
inline constexpr const char* search_steps = "search_steps";
// An entry that marks a trial which is only trained to judge another one: its learning rate is this many half octaves
// above the rate that the search chose.
inline constexpr const char* neighbour_steps = "neighbour";
// Whether a trial belongs to a search for a learning rate, whether it trains at a neighbouring rate, and whether it is
// neither. Only trials of the last kind are in tables, and have verdicts.
bool is_of_search(const Point& trial);
bool is_neighbour(const Point& trial);
bool is_judged(const Point& trial);
// The combination of the axes of a trial: its point without rate, seed and the marks of searches and neighbours.
Point cell_of(const Point& trial);

}  // namespace plumb::lab
