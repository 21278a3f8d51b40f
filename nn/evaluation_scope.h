// A scope in which a model is in evaluation mode.
#pragma once

#include <utility>
#include <vector>

#include "nn/module.h"

namespace plumb::nn {

// Puts a module and everything below it into evaluation mode while the scope lives. The destructor restores the mode of
// each module, so a part that was already in evaluation mode, such as a frozen batch norm, stays in it. Scopes may be
// nested. The modules must live as long as the scope.
class EvaluationScope {
 public:
  [[nodiscard(
      "the model is in evaluation mode while the scope lives; give the scope a name: EvaluationScope "
      "scope(model);")]] explicit EvaluationScope(Module& module);
  ~EvaluationScope();
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> was_training_;  // parents first
};

}  // namespace plumb::nn
