// Elements whose type a kernel learns only at run time (typed() in simd-inl.h). The type is f32, bf16, or f32 that
// holds values rounded to bf16.
#pragma once

#include "core/array.h"

namespace plumb::cpu {

// An f32 that is rounded to bf16 when it is written. Rounded is the type of the operands if f32 instructions compute a
// bf16 product.
struct Rounded {
  float value;
};

// The address and type of an array's elements. `rounded` means that the type is Rounded.
struct Elements {
  void* data = nullptr;
  DType dtype = DType::f32;
  bool rounded = false;

  Elements() = default;
  // Refers to the elements of `a`, or to null if `a` is undefined. These constructors drop const, although a kernel
  // writes only to its results.
  explicit Elements(const Array& a) {
    if (!a.defined()) return;
    internal_check(a.dtype() == DType::f32 || a.dtype() == DType::bf16,
                   "expected a kernel argument of f32 or bf16, got {}", enum_name(a.dtype()));
    data = const_cast<void*>(a.bytes());
    dtype = a.dtype();
  }
  explicit Elements(const float* p) : data(const_cast<float*>(p)) {}
  explicit Elements(const bfloat16* p) : data(const_cast<bfloat16*>(p)), dtype(DType::bf16) {}
  explicit Elements(const Rounded* p) : data(const_cast<Rounded*>(p)), rounded(true) {}
  // Returns the elements from element n on. Null stays null.
  Elements operator+(std::int64_t n) const {
    Elements e = *this;
    if (data) e.data = static_cast<char*>(data) + n * static_cast<std::int64_t>(size_of(dtype));
    return e;
  }
};

}  // namespace plumb::cpu
