#include "core/scope.h"

#include "core/error.h"

namespace plumb {
namespace {

struct ThreadState {
  Path path;
  const char* phase = "";
  Repeat repeat = Repeat::none;
  RandomState random;
  bool random_open = false;
};

ThreadState& state() {
  thread_local ThreadState s;
  return s;
}

}  // namespace

const Path& current_path() { return state().path; }
const RandomState& random_state() { return state().random; }
const RandomState& random_state_for(const char* op, const char* otherwise) {
  check(
      state().random_open,
      "[{}] expected an open RandomScope, got none, so every step would draw the same numbers: open one for each step, "
      "RandomScope scope({{.seed = seed, .step = step}}), {}",
      op, otherwise);
  return state().random;
}
const char* current_phase() { return state().phase; }
Repeat current_repeat() { return state().repeat; }

PathScope::PathScope(Path path) : value_(state().path, std::move(path)) {}
PhaseScope::PhaseScope(const char* phase) : value_(state().phase, phase) {}
RepeatScope::RepeatScope(Repeat why)
    : why_(state().repeat, why), phase_(why == Repeat::checkpoint ? "forward (checkpoint)" : "observer") {}
RandomScope::RandomScope(RandomState random) : state_(state().random, random), open_(state().random_open, true) {}

std::string current_place() {
  const ThreadState& s = state();
  std::string text;
  if (s.path) text += " in " + *s.path;
  if (*s.phase) text += std::string(text.empty() ? " in " : ", ") + s.phase;
  if (s.random_open && !text.empty()) text += fmt::format(", step {}", s.random.step);
  return text;
}

}  // namespace plumb
