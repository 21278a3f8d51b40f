// Chooses the kernel for a call. If the cpu kernel accepts the dtypes of the call, the cpu kernel runs; otherwise the
// reference kernel runs.
#pragma once

#include <algorithm>

#include "core/backend.h"

namespace plumb::cpu {

// Returns whether an argument of a kernel is, or contains, an array of this dtype.
template <class T>
constexpr bool is(DType dtype, const T& argument) {
  if constexpr (std::is_base_of_v<Array, T>)
    return argument.defined() && argument.dtype() == dtype;
  else if constexpr (std::is_same_v<T, Heads> || std::is_same_v<T, HeadsOut>)
    return is(dtype, argument.array);
  else if constexpr (std::is_same_v<T, std::span<const Array>>)
    return std::ranges::all_of(argument, [&](const Array& a) { return is(dtype, a); });
  else if constexpr (requires { argument[0].average; })
    return std::ranges::all_of(argument, [&](const auto& u) { return is(dtype, u.average); });
  else if constexpr (requires { argument[0].parameter; })
    return std::ranges::all_of(argument, [&](const auto& u) { return is(dtype, u.parameter); });
  else
    return false;
}

// The entries of the kernel table. f32<&Kernels::where, cpu::where> calls cpu::where if the call has f32 arrays and no
// bf16 arrays, and the reference kernel otherwise (f64, bf16, no floating-point array). f32_or_bf16 serves cpu kernels
// that also accept the mixtures with bf16 in kernels.def. `any` serves cpu kernels that accept all dtypes. by_reference
// serves kernels without a cpu version.
template <auto entry, auto fast>
struct Route;
template <class... Args, void (*Kernels::*entry)(Args...)>
struct Route<entry, nullptr> {
  static void never(Args... args) { (reference_kernels().*entry)(args...); }
};
template <class... Args, void (*Kernels::*entry)(Args...), void (*fast)(Args...)>
struct Route<entry, fast> {
  static void of_f32(Args... args) {
    const bool yes = (is(DType::f32, args) || ...) && !(is(DType::bf16, args) || ...);
    yes ? fast(args...) : (reference_kernels().*entry)(args...);
  }
  static void of_both(Args... args) {
    const bool yes = (is(DType::f32, args) || ...) || (is(DType::bf16, args) || ...);
    yes ? fast(args...) : (reference_kernels().*entry)(args...);
  }
};
template <auto entry, auto fast>
constexpr auto any = fast;
template <auto entry, auto>
constexpr auto by_reference = &Route<entry, nullptr>::never;
template <auto entry, auto fast>
constexpr auto f32 = &Route<entry, fast>::of_f32;
template <auto entry, auto fast>
constexpr auto f32_or_bf16 = &Route<entry, fast>::of_both;

}  // namespace plumb::cpu
