#include "nn/evaluation_scope.h"

namespace plumb::nn {

EvaluationScope::EvaluationScope(Module& module) {
  module.each_module([&](Module& m) { was_training_.emplace_back(&m, m.training()); });
  module.eval();
}

EvaluationScope::~EvaluationScope() {
  // train() sets everything below as well: children come after their parents, and so have the last word.
  for (const auto& [module, training] : was_training_) module->train(training);
}

}  // namespace plumb::nn
