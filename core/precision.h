// The precision in which layers compute products. In bf16, the operands of a product are rounded to bf16, and its sums
// are f32. Weights keep their f32 values (master weights). Gates, statistics of norms, softmax, the loss and the
// residual stream stay f32.
#pragma once

#include <cstdint>

#include "core/enum_names.h"
#include "core/scoped_value.h"

namespace plumb {

// The precision of matrix products in layers.
enum class Precision : std::uint8_t { f32, bf16 };
constexpr auto names_of(Precision) { return std::array{"f32", "bf16"}; }

// The precision of this thread: f32 unless a PrecisionScope is open.
Precision precision();

// Sets the precision of products on this thread until the scope ends. Scopes nest.
class PrecisionScope {
 public:
  [[nodiscard(
      "products have this precision only while the scope lives; name it: PrecisionScope "
      "scope(precision);")]] explicit PrecisionScope(Precision precision);

 private:
  ScopedValue<Precision> value_;
};

}  // namespace plumb
