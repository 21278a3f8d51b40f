// A reference to a variable of any enum type. A command-line option reads and sets the variable through this reference.
#pragma once

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/enum_names.h"

namespace plumb::lab {

// Refers to a variable of any enum type, and knows the names of the enum's values.
class EnumVariable {
 public:
  using Names = std::vector<std::pair<std::string, long long>>;  // pairs of a name and its value

  // The variable must outlive this object.
  template <NamedEnum E>
  EnumVariable(E* variable)
      : variable_(variable),
        type_(&typeid(E)),
        get_([](const void* at) { return static_cast<long long>(*static_cast<const E*>(at)); }),
        set_([](void* at, long long value) { *static_cast<E*>(at) = static_cast<E>(value); }),
        names_(names(enum_values<E>())) {}

  // The names of the given values.
  template <NamedEnum E>
  static Names names(const std::vector<E>& values) {
    Names named;
    for (const E value : values) named.emplace_back(enum_name(value), static_cast<long long>(value));
    return named;
  }

  const Names& names() const { return names_; }          // the names of all values of the enum
  const std::type_info& type() const { return *type_; }  // the enum type

  long long get() const { return get_(variable_); }            // the value of the variable
  void set(long long value) const { set_(variable_, value); }  // assigns `value` to the variable

  friend bool operator==(const EnumVariable& a, const EnumVariable& b) { return a.variable_ == b.variable_; }

 private:
  void* variable_;
  const std::type_info* type_;
  long long (*get_)(const void*);
  void (*set_)(void*, long long);
  Names names_;
};

}  // namespace plumb::lab
