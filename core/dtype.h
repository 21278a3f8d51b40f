// The element types of arrays.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/bfloat16.h"
#include "core/enum_names.h"
#include "core/error.h"

namespace plumb {

// The element types: floating point (f32, f64, bf16) and integers (i64, u8).
enum class DType : std::uint8_t { f32, f64, i64, u8, bf16 };
constexpr auto names_of(DType) { return std::array{"f32", "f64", "i64", "u8", "bf16"}; }

// The C++ type of an element as messages show it, such as "float".
inline const char* type_name(DType dtype) {
  constexpr const char* names[] = {"float", "double", "std::int64_t", "std::uint8_t", "bfloat16"};
  return names[static_cast<int>(dtype)];
}

// The size of an element in bytes.
inline std::size_t size_of(DType dtype) {
  constexpr std::size_t sizes[] = {4, 8, 8, 1, 2};
  return sizes[static_cast<int>(dtype)];
}

// Whether ops compute in this type: f32 or f64.
inline bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }
// Whether the type is f32, f64 or bf16. Only fused ops pass bf16 to each other. If an op takes bf16, the comment of the
// op mentions bf16. cast() converts to and from bf16.
inline bool is_real(DType dtype) { return is_float(dtype) || dtype == DType::bf16; }

// The DType of a C++ element type. For any other type, the call does not compile.
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
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;

// Calls f.template operator()<T>() with the C++ type T of a floating dtype. Throws Error "[op] expected f32 or f64, got
// ..." for another dtype.
template <class F>
decltype(auto) dispatch_float(DType dtype, const char* op, F&& f) {
  check(is_float(dtype), "[{}] expected f32 or f64, got {}", op, enum_name(dtype));
  return dtype == DType::f32 ? f.template operator()<float>() : f.template operator()<double>();
}

// Calls f.template operator()<T>() with the C++ type T of any dtype.
template <class F>
decltype(auto) dispatch_any(DType dtype, F&& f) {
  switch (dtype) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::i64:
      return f.template operator()<std::int64_t>();
    case DType::bf16:
      return f.template operator()<bfloat16>();
    default:
      return f.template operator()<std::uint8_t>();
  }
}

}  // namespace plumb
