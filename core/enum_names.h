// The names of an enum's values, for options and files. An enum declares its names once, next to the enum, in the order
// of its values, which count from 0:
//
//   enum class Pool { token, mean };
//   constexpr auto names_of(Pool) { return std::array{"token", "mean"}; }
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace plumb {

// An enum that declares its names with names_of().
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { names_of(value).front() } -> std::convertible_to<const char*>;
};

// The name of `value`, such as "mean". The enum must declare `value`.
template <NamedEnum E>
constexpr const char* enum_name(E value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

// All values of an enum, in their order.
template <NamedEnum E>
std::vector<E> enum_values() {
  std::vector<E> values;
  for (std::size_t i = 0; i < names_of(E()).size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

}  // namespace plumb
