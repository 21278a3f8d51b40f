// The current position of a thread in the program: module path, phase, and step (random_scope.h). Error messages quote
// this position, and random draws depend on it.
#pragma once

#include <memory>
#include <string>

#include "core/random_scope.h"
#include "core/scoped_value.h"

namespace plumb {

// A module path such as "ViT.blocks.3.attn.qkv"; null at the top level.
using Path = std::shared_ptr<const std::string>;

// The module path of this thread.
const Path& current_path();
// The random state for an op that draws. Throws Error if no RandomScope is open, because then every step would draw the
// same numbers. The text `otherwise` ends the message; this text explains how to avoid draws.
const RandomState& random_state_for(const char* op, const char* otherwise = "or call eval() on the model");
// The phase of this thread, such as "forward", "forward (checkpoint)" or "backward"; "" outside all phases. The phase
// is a label for messages and profiles. No result depends on it.
const char* current_phase();

// The reason for which a pass computes again what an earlier pass has computed. Only `none` counts as a pass: in other
// passes, layers leave the state that they keep between steps as it is, and observers are not called.
enum class Repeat {
  none,
  checkpoint,  // checkpoint() computes a function again for its gradient
  observer     // an observer of a network runs layers again
};
// The reason of this thread.
Repeat current_repeat();

// Sets the module path until the scope ends. Scopes nest.
class PathScope {
 public:
  [[nodiscard("the path is set only while the scope lives; name it: PathScope scope(path);")]] explicit PathScope(
      Path path);

 private:
  ScopedValue<Path> value_;
};

// Sets the phase until the scope ends. `phase` is not copied.
class PhaseScope {
 public:
  [[nodiscard("the phase is set only while the scope lives; name it: PhaseScope scope(phase);")]] explicit PhaseScope(
      const char* phase);

 private:
  ScopedValue<const char*> value_;
};

// Sets the reason until the scope ends, and the phase with the name of the reason. Only checkpoint() and the calls of
// observers open such a scope.
class RepeatScope {
 public:
  [[nodiscard("the reason applies only while the scope lives; name it: RepeatScope scope(why);")]] explicit RepeatScope(
      Repeat why);

 private:
  ScopedValue<Repeat> why_;
  PhaseScope phase_;
};

// The position for error messages: " in ViT.blocks.3.attn.qkv, forward, step 0", or "" if no scope is open.
std::string current_place();

}  // namespace plumb
