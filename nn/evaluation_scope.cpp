#include "nn/evaluation_scope.h"

namespace plumb::nn {

EvaluationScope::EvaluationScope(Module& module) {
  module.each_module([&](Module& m) { was_training_.emplace_back(&m, m.training()); });
  module.eval();
}

EvaluationScope::~EvaluationScope() {
  // train() also sets the modules below. Children come after their parents in this list, so their own mode is set last.
  for (const auto& [module, training] : was_training_) module->train(training);
}

}  // namespace plumb::nn
