// Which kernel serves a call: the f32 one of this backend where it can, else the reference.
#pragma once

#include <algorithm>

#include "core/backend.h"

namespace plumb::cpu {

template <class T>
constexpr bool is(DType dtype, const T& argument) {
  if constexpr (std::is_same_v<T, Array>)
    return argument.defined() && argument.dtype() == dtype;
  else if constexpr (std::is_same_v<T, Heads>)
    return is(dtype, argument.array);
  else if constexpr (std::is_same_v<T, std::span<const Array>>)
    return std::ranges::all_of(argument, [&](const Array& a) { return is(dtype, a); });
  else if constexpr (std::is_same_v<T, std::span<const AdamWUpdate>>)
    return std::ranges::all_of(argument, [&](const AdamWUpdate& u) { return is(dtype, u.parameter); });
  else
    return false;
}

// f32<&Kernels::exp, cpu::exp> is an entry of the table: cpu::exp for calls with f32 arrays, reference_kernels().exp for f64 and for
// calls without any floating array.
template <auto entry, auto fast>
struct Route;
template <class Result, class... Args, Result (*Kernels::*entry)(Args...), Result (*fast)(Args...)>
struct Route<entry, fast> {
  static Result call(Args... args) { return (is(DType::f32, args) || ...) ? fast(args...) : (reference_kernels().*entry)(args...); }
};
template <auto entry, auto fast>
constexpr auto f32 = &Route<entry, fast>::call;

}  // namespace plumb::cpu
