// The names of an enum's values, as users type them and as files hold them. An enum declares them once, beside itself,
// in the order of its values, which count from 0:
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

template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { names_of(value).front() } -> std::convertible_to<const char*>;
};

// "mean". `value` must be one that the enum declares.
template <NamedEnum E>
constexpr const char* enum_name(E value) {
  return names_of(value)[static_cast<std::size_t>(value)];
}

// All values, in their order.
template <NamedEnum E>
std::vector<E> enum_values() {
  std::vector<E> values;
  for (std::size_t i = 0; i < names_of(E()).size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

}  // namespace plumb
