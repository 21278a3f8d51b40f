// Anomaly mode: stops at the first number that is not finite, and names the op that computed it.
#pragma once

#include "core/array.h"

namespace plumb {

// While an AnomalyMode lives, every op on this thread checks its result in the forward and the backward pass. An op
// throws Error for a result that is not finite:
//   [log] made 3 of 4096 elements non-finite (first: nan at 17), finite elements lie in -2.3..0.7
//          in ViT.blocks.3.attn, forward, step 120
// The cost is one pass over each result.
class AnomalyMode {
 public:
  [[nodiscard("an AnomalyMode checks results only while it lives; name it: AnomalyMode guard;")]] AnomalyMode();

 private:
  ScopedValue<bool> value_;
};

// Whether every element is finite; true for integers. Waits for the array.
bool all_finite(const Array& a);

namespace detail {
// Pauses the checks while a backward function runs. The steps inside the backward function are not checked; its result
// is checked under the name of the op.
class PauseAnomalyMode {
 public:
  [[nodiscard(
      "a PauseAnomalyMode has an effect only while it lives; name it: PauseAnomalyMode guard;")]] PauseAnomalyMode();

 private:
  ScopedValue<bool> value_;
};
}  // namespace detail

}  // namespace plumb
