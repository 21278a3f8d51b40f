// A variable of any enum type, as an option of the command line sets it.
#pragma once

#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/enum_names.h"

namespace plumb::lab {

class EnumVariable {
 public:
  using Names = std::vector<std::pair<std::string, long long>>;  // with the value of each

  // The variable must outlive this. The names are those that the enum declares (core/enum_names.h), if it does.
  template <class E>
  requires std::is_enum_v<E> EnumVariable(E* variable)
      : variable_(variable),
        type_(&typeid(E)),
        get_([](const void* at) { return static_cast<long long>(*static_cast<const E*>(at)); }),
        set_([](void* at, long long value) { *static_cast<E*>(at) = static_cast<E>(value); }) {
    if constexpr (NamedEnum<E>) names_ = names<E>(enum_values<E>());
  }

  template <NamedEnum E>
  static Names names(const std::vector<E>& values) {
    Names named;
    for (const E value : values) named.emplace_back(enum_name(value), static_cast<long long>(value));
    return named;
  }

  const Names& names() const { return names_; }  // of all values, to show one
  void set_names(Names names) { names_ = std::move(names); }
  const std::type_info& type() const { return *type_; }

  const void* address() const { return variable_; }
  long long get() const { return get_(variable_); }
  void set(long long value) const { set_(variable_, value); }
  void set_at(void* place, long long value) const { set_(place, value); }  // another variable of the type

  friend bool operator==(const EnumVariable& a, const EnumVariable& b) { return a.variable_ == b.variable_; }

 private:
  void* variable_;
  const std::type_info* type_;
  long long (*get_)(const void*);
  void (*set_)(void*, long long);
  Names names_ = {};
};

}  // namespace plumb::lab
