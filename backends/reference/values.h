// Access to the elements of f32, f64 and bf16 arrays as doubles, so that one kernel serves every mixture of these
// dtypes.
#pragma once

#include "core/array.h"

namespace plumb::reference {

// Reads the elements of an array as doubles, exactly. The array is f32, f64 or bf16. An undefined array has no
// elements.
class Values {
 public:
  explicit Values(const Array& a) : data_(a.defined() ? a.bytes() : nullptr), dtype_(a.dtype()) {
    internal_check(is_real(dtype_), "expected a kernel argument of f64, f32 or bf16, got {}", enum_name(dtype_));
  }

  double operator[](std::int64_t i) const {
    switch (dtype_) {
      case DType::f64:
        return static_cast<const double*>(data_)[i];
      case DType::f32:
        return static_cast<const float*>(data_)[i];
      default:
        return static_cast<const bfloat16*>(data_)[i];
    }
  }

 private:
  const void* data_;
  DType dtype_;
};

// Reads and writes the elements of an array. set() rounds the double once, to the dtype of the array.
class OutValues : public Values {
 public:
  explicit OutValues(const Out& a) : Values(a), data_(a.defined() ? a.mutable_bytes() : nullptr), dtype_(a.dtype()) {}

  void set(std::int64_t i, double value) const {
    switch (dtype_) {
      case DType::f64:
        static_cast<double*>(data_)[i] = value;
        break;
      case DType::f32:
        static_cast<float*>(data_)[i] = static_cast<float>(value);
        break;
      default:
        static_cast<bfloat16*>(data_)[i] = bfloat16(value);
    }
  }

 private:
  void* data_;
  DType dtype_;
};

}  // namespace plumb::reference
