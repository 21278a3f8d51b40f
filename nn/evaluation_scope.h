// A scope in which a model is in evaluation mode.
#pragma once

#include <utility>
#include <vector>

#include "nn/module.h"

namespace plumb::nn {

// Puts a module and every module below it into evaluation mode as long as the scope lives. The destructor restores the
// previous mode of each module: a module that was in evaluation mode before the scope, such as a frozen batch norm, is
// still in evaluation mode after the scope. Scopes may be nested. The modules must live as long as the scope.
class EvaluationScope {
 public:
  [[nodiscard(
      "the model is in evaluation mode while the scope lives; give the scope a name: EvaluationScope "
      "scope(model);")]] explicit EvaluationScope(Module& module);
  ~EvaluationScope();
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> was_training_;  // modules and their previous modes, parents first
};

}  // namespace plumb::nn
