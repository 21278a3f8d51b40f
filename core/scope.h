// Where the program is: module path, phase and step of this thread. Error messages quote it, and random draws are keyed by it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

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
const char* current_phase();  // "forward", "backward", or "" outside both

// Opens a module's scope until destruction.
class PathScope {
 public:
  explicit PathScope(Path path);
  ~PathScope();
  PathScope(const PathScope&) = delete;
  PathScope& operator=(const PathScope&) = delete;

 private:
  Path saved_;
};

class PhaseScope {
 public:
  explicit PhaseScope(const char* phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  const char* saved_;
};

// Sets seed and step for the passes inside it: one per training step.
//   RandomScope scope({.seed = seed, .step = step});
class RandomScope {
 public:
  explicit RandomScope(RandomState state);
  ~RandomScope();
  RandomScope(const RandomScope&) = delete;
  RandomScope& operator=(const RandomScope&) = delete;

 private:
  RandomState saved_;
  bool saved_open_;
};

// " in ViT.blocks.3.attn.qkv, forward, step 0", or "" where no scope is open.
std::string where();

}  // namespace plumb
