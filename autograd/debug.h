// Anomaly mode: stops at the first non-finite number and names the op that made it.
#pragma once

#include "core/array.h"

namespace plumb {

// While one is alive on this thread, every op checks its result, forward and backward, and throws
//   [log] made 3 of 4096 elements non-finite (first: nan at 17), finite ones lie in -2.3..0.7
//          in ViT.blocks.3.attn, forward, step 120
// Costs one pass over each result.
class AnomalyMode {
 public:
  [[nodiscard("ops check while it lives; name it: AnomalyMode guard;")]] AnomalyMode();

 private:
  ScopedValue<bool> value_;
};

bool all_finite(const Array& a);

namespace detail {
// While a backward function runs: its result is checked under the name of the op that it belongs to, not each step of
// it.
class PauseAnomalyMode {
 public:
  [[nodiscard("the pause lasts while it lives; name it: PauseAnomalyMode guard;")]] PauseAnomalyMode();

 private:
  ScopedValue<bool> value_;
};
}  // namespace detail

}  // namespace plumb
