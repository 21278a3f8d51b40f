// Element types of arrays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/error.h"

namespace plumb {

enum class DType : std::uint8_t { f32, f64, i64, u8 };

inline const char* name(DType dtype) {
  constexpr const char* names[] = {"f32", "f64", "i64", "u8"};
  return names[static_cast<int>(dtype)];
}

inline std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {4, 8, 8, 1};
  return sizes[static_cast<int>(dtype)];
}

inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

template <class T>
inline constexpr DType dtype_of = [] { static_assert(sizeof(T) == 0, "no DType for this type"); }();
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;

// Calls f.template operator()<T>() with the C++ type of a floating dtype; throws "[op] expected f32 or f64, got ...".
template <class F>
decltype(auto) dispatch_float(DType dtype, const char* op, F&& f) {
  check(is_float(dtype), "[{}] expected f32 or f64, got {}", op, name(dtype));
  return dtype == DType::f32 ? f.template operator()<float>() : f.template operator()<double>();
}

// The same for every dtype.
template <class F>
decltype(auto) dispatch_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    default:
      return f.template operator()<std::uint8_t>();
  }
}

}  // namespace plumb
