// The names of an enum's values, for options, files and messages. An enum declares its names once, next to the enum, in
// the order of its values, which count from 0:
//
//   enum class Pool { token, mean };
//   constexpr auto names_of(Pool) { return std::array{"token", "mean"}; }
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "core/names.h"
#include "core/nearest.h"

namespace plumb {

// An enum that declares its names with names_of().
template <class E>
concept NamedEnum = std::is_enum_v<E> && requires(E value) {
  { names_of(value).front() } -> std::convertible_to<const char*>;
};

// The name of `value`, such as "mean". Throws Error if names_of() has fewer names than values.
template <NamedEnum E>
constexpr const char* enum_name(E value) {
  const auto names = names_of(value);
  const auto place = static_cast<std::size_t>(value);
  if (place >= names.size())
    fail(fmt::format("[enum] expected names_of() to name each value, got {} names and value {}", names.size(), place));
  return names[place];
}

// All names of an enum, in the order of its values.
template <NamedEnum E>
std::vector<std::string> enum_names() {
  const auto names = names_of(E());
  return {names.begin(), names.end()};
}

// The value of an enum with this name. For another name, throws Error "[op] expected a, b or c, got ...", with the
// nearest name.
template <NamedEnum E>
E enum_named(const char* op, const std::string& name) {
  const std::vector<std::string> names = enum_names<E>();
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    const std::string near = nearest_name(name, names);
    fail(fmt::format("[{}] expected {}, got \"{}\"{}", op, alternatives(names), name,
                     near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
  }
  return static_cast<E>(found - names.begin());
}

// All values of an enum, in their order.
template <NamedEnum E>
std::vector<E> enum_values() {
  std::vector<E> values;
  for (std::size_t i = 0; i < names_of(E()).size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

}  // namespace plumb
