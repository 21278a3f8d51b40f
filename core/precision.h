// What layers compute their products in. In bf16 the operands of a product are rounded to bf16 and its sums are f32;
// weights keep their f32 values (masters), and gates, statistics of norms, softmax, loss and the residual stream stay
// f32.
#pragma once

#include <cstdint>

#include "core/scoped_value.h"

namespace plumb {

enum class Precision : std::uint8_t { f32, bf16 };

inline const char* name(Precision precision) { return precision == Precision::f32 ? "f32" : "bf16"; }

// Of this thread: f32 unless a scope says otherwise.
Precision precision();

// While one lives, products on this thread run in `precision`. Scopes nest.
class PrecisionScope {
 public:
  [[nodiscard(
      "products have this precision while the scope lives; name it: PrecisionScope "
      "scope(precision);")]] explicit PrecisionScope(Precision precision);

 private:
  ScopedValue<Precision> value_;
};

}  // namespace plumb
