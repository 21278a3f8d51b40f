// A model in evaluation mode for a while.
#pragma once

#include <utility>
#include <vector>

#include "nn/module.h"

namespace plumb::nn {

// While one lives, a module and everything below it are in evaluation mode. Then each module has its own mode again:
// a part that was kept in evaluation mode, such as a frozen batch norm, stays in it. Scopes may be nested. The module
// and everything below must live as long as the scope.
class EvaluationScope {
 public:
  [[nodiscard(
      "the model is in evaluation mode while the scope lives; name it: EvaluationScope "
      "scope(model);")]] explicit EvaluationScope(Module& module);
  ~EvaluationScope();
  EvaluationScope(const EvaluationScope&) = delete;
  EvaluationScope& operator=(const EvaluationScope&) = delete;

 private:
  std::vector<std::pair<Module*, bool>> was_training_;  // parents first
};

}  // namespace plumb::nn
