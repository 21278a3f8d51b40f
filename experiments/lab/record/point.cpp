#include "experiments/lab/record/point.h"

#include <algorithm>
#include <cmath>

#include "experiments/lab/hash.h"

namespace plumb::lab {

std::string to_string(const AxisValue& value) {
  return std::visit([](const auto& v) { return fmt::format("{}", v); }, value);
}

bool same(const AxisValue& a, const AxisValue& b) {
  if (a == b) return true;
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  if (x && y) return std::abs(*x - *y) < 1e-5 * std::abs(*x) && fmt::format("{:g}", *x) == fmt::format("{:g}", *y);
  const auto is_whole = [](const AxisValue& v, double number) {
    const auto* whole = std::get_if<std::int64_t>(&v);
    return whole && static_cast<double>(*whole) == number;
  };
  return (x && is_whole(b, *x)) || (y && is_whole(a, *y));
}

const AxisValue* Point::find(std::string_view axis) const {
  const auto entry = std::ranges::find(entries_, axis, &Entry::first);
  return entry == entries_.end() ? nullptr : &entry->second;
}

void Point::set(const std::string& axis, AxisValue value) {
  const auto entry = std::ranges::find(entries_, axis, &Entry::first);
  if (entry == entries_.end())
    entries_.emplace_back(axis, std::move(value));
  else
    entry->second = std::move(value);
}

Point Point::without(std::string_view axis) const {
  Point rest = *this;
  std::erase_if(rest.entries_, [&](const Entry& e) { return e.first == axis; });
  return rest;
}

Point operator&&(Point a, const Point& b) {
  for (const auto& [axis, value] : b.entries_) {
    const AxisValue* const there = a.find(axis);
    check(!there || same(*there, value), "[point] expected one value on the axis {} in a condition, got {} and {}",
          axis, there ? to_string(*there) : "", to_string(value));
    a.set(axis, value);
  }
  return a;
}

bool Point::contains(const Point& part) const {
  return std::ranges::all_of(part.entries_, [&](const Entry& e) {
    const AxisValue* value = find(e.first);
    return value && same(*value, e.second);
  });
}

std::string Point::label() const {
  std::string text;
  for (const auto& [axis, value] : entries_) {
    if (!text.empty()) text += ' ';
    if (&axis != &entries_.front().first || !std::holds_alternative<std::string>(value)) text += axis + ' ';
    text += to_string(value);
  }
  return text;
}

std::string Point::file_stem() const {
  constexpr std::size_t longest = 160;
  std::string stem;
  for (const char c : label()) {
    const bool plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '.' ||
                       c == '_' || c == '+' || c == '-';
    stem += c == ' ' ? "-" : plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return stem.size() <= longest ? stem : stem.substr(0, longest) + "-" + hash_of(stem);
}

bool is_of_search(const Point& trial) { return trial.find(search_steps) != nullptr; }
bool is_neighbour(const Point& trial) { return trial.find(neighbour_steps) != nullptr; }
bool is_judged(const Point& trial) { return !is_of_search(trial) && !is_neighbour(trial); }

Point cell_of(const Point& trial) {
  return trial.without("lr").without(search_steps).without(neighbour_steps).without("seed");
}

}  // namespace plumb::lab
