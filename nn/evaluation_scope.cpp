#include "nn/evaluation_scope.h"

namespace plumb::nn {

EvaluationScope::EvaluationScope(Module& module) {
  module.each_module([&](Module& m) { was_training_.emplace_back(&m, m.training()); });
  module.eval();
}

EvaluationScope::~EvaluationScope() {
  // train() also sets the mode of all modules below. In this list, children come after their parents, so the mode of
  // each child is set last.
  for (const auto& [module, training] : was_training_) module->train(training);
}

}  // namespace plumb::nn
