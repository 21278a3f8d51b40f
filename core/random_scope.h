// The seed and the step on which the random draws of a thread depend.
#pragma once

#include <cstdint>

#include "core/scoped_value.h"

namespace plumb {

// The values that every random draw of a pass depends on, in addition to the path of the module (core/random.h).
struct RandomState {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;  // training step
  // Index of the first sample of this pass in the whole batch, which several parts or workers may share. Sample i of a
  // pass gets the draws of sample first_sample + i of the whole batch.
  std::uint32_t first_sample = 0;
};

// The random state of this thread: {0, 0, 0} if no RandomScope is open, as in evaluation.
const RandomState& random_state();

// Sets the seed and the step of random draws until the scope ends. Training opens a scope for each step:
//   RandomScope scope({.seed = seed, .step = step});
// In one state, each pass of a module draws the same numbers. Two passes that must differ need two scopes:
// - The parts of a batch: .first_sample is the index of the first sample of the part (autograd/backward.h).
// - A second pass of a whole batch with other draws, as in R-Drop: .first_sample is the size of the batch.
class RandomScope {
 public:
  [[nodiscard(
      "the seed and step apply only while the scope lives; name it: RandomScope scope({.seed = "
      "0});")]] explicit RandomScope(RandomState state);

 private:
  ScopedValue<RandomState> state_;
  ScopedValue<bool> open_;
};

}  // namespace plumb
