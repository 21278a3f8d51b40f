#include "core/scope.h"

#include "core/error.h"

namespace plumb {
namespace {

struct ThreadState {
  Path path;
  const char* phase = "";
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
const char* current_phase() { return state().phase; }

PathScope::PathScope(Path path) : saved_(std::exchange(state().path, std::move(path))) {}
PathScope::~PathScope() { state().path = std::move(saved_); }

PhaseScope::PhaseScope(const char* phase) : saved_(std::exchange(state().phase, phase)) {}
PhaseScope::~PhaseScope() { state().phase = saved_; }

RandomScope::RandomScope(RandomState random) : saved_(std::exchange(state().random, random)), saved_open_(std::exchange(state().random_open, true)) {}
RandomScope::~RandomScope() {
  state().random = saved_;
  state().random_open = saved_open_;
}

std::string where() {
  const ThreadState& s = state();
  std::string text;
  if (s.path) text += " in " + *s.path;
  if (*s.phase) text += std::string(text.empty() ? " in " : ", ") + s.phase;
  if (s.random_open && !text.empty()) text += fmt::format(", step {}", s.random.step);
  return text;
}

void fail(const std::string& message) {
  const std::string place = where();
  throw Error(place.empty() ? message : message + "\n      " + place);
}

}  // namespace plumb
