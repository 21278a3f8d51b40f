// The training step, for gates that change with it.
#pragma once

#include <cstdint>
#include <memory>

#include "nn/module.h"

namespace plumb::nn {

// Reads the training step of a model. A gate gets its reader from GateContext::training_step():
//   struct Ramp : nn::Gate {
//     explicit Ramp(const nn::GateContext& c) : step(c.training_step()) {}
//     Tensor combine(const Tensor& skip, const Tensor& branch) const override {
//       return skip + std::min(static_cast<double>(step()) / 1000, 1.0) * branch;
//     }
//     nn::TrainingStep step;
//   };
// In training, the step is that of the open RandomScope, and the model remembers it. In evaluation, the step is the
// last one that the model was trained with, so that evaluation measures the network that was trained. The step is a
// parameter of the stack, "training_step" [1] of Role::counter: weight files and checkpoints contain it, and an Ema
// does not average it.
// If several threads train one model at the same time, a gate gets the step of the RandomScope of its own thread, so
// that each pass has the same bits as on one thread. The model remembers the step that a gate read last. If the threads
// train at different steps, the step in evaluation is one of these steps, and depends on the order of the threads.
class TrainingStep {
 public:
  // Returns the step. Throws Error in training if no RandomScope is open, because the step is then unknown.
  std::int64_t operator()() const;

 private:
  friend struct GateContext;
  friend class Stack;
  struct Counter;
  TrainingStep();               // the step of a stack, which attach() completes
  TrainingStep reader() const;  // a copy; remembers that the step is needed
  bool needed() const;
  // Sets the module whose mode decides between training and evaluation, and the parameter that keeps the step.
  void attach(const Module& owner, const Tensor& value) const;

  std::shared_ptr<Counter> counter_;
};

}  // namespace plumb::nn
