// Where the program is: module path, phase and step of this thread. Error messages quote it, and random draws are keyed
// by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "core/scoped_value.h"

namespace plumb {

using Path = std::shared_ptr<const std::string>;  // "ViT.blocks.3.attn.qkv"; null at top level

// What every random draw of a pass depends on besides the module's path (core/random.h).
struct RandomState {
  std::uint64_t seed = 0;
  std::uint32_t step = 0;          // training step
  std::uint32_t first_sample = 0;  // index of the batch's first sample in the whole (multi-worker) batch
};

// The state of this thread, read by ops and modules.
const Path& current_path();
const RandomState& random_state();
// The same for an op that is about to draw: throws if no RandomScope is open, as every step would draw the same.
// `otherwise` ends the message: how to have no draws.
const RandomState& random_state_for(const char* op, const char* otherwise = "or call eval() on the model");
const char* current_phase();  // "forward", "backward", or "" outside both

// Opens a module's scope until destruction.
class PathScope {
 public:
  [[nodiscard("the path is open while the scope lives; name it: PathScope scope(path);")]] explicit PathScope(
      Path path);

 private:
  ScopedValue<Path> value_;
};

class PhaseScope {
 public:
  [[nodiscard("the phase is open while the scope lives; name it: PhaseScope scope(phase);")]] explicit PhaseScope(
      const char* phase);

 private:
  ScopedValue<const char*> value_;
};

// Sets seed and step for the passes inside it: one per training step.
//   RandomScope scope({.seed = seed, .step = step});
class RandomScope {
 public:
  [[nodiscard(
      "draws are the step's own while the scope lives; name it: RandomScope scope({.seed = "
      "0});")]] explicit RandomScope(RandomState state);

 private:
  ScopedValue<RandomState> state_;
  ScopedValue<bool> open_;
};

// " in ViT.blocks.3.attn.qkv, forward, step 0", or "" where no scope is open.
std::string current_place();

}  // namespace plumb
