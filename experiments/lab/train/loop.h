// The training loop of a trial: its steps, each with the update of a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "autograd/backward.h"
#include "experiments/lab/train/observer.h"
#include "experiments/lab/train/step_scope.h"
#include "nn/module.h"
#include "nn/optim/ema.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

class Loop;
class Trial;
class TrialState;

// A step of a loop.
class Step {
 public:
  std::int64_t number() const { return number_; }  // counted from 0
  // Minimises the loss that `loss` computes: the backward pass, the decision whether the training has diverged, the
  // update, and, in about 200 steps, the trace of loss, lr_now and grad_norm. `loss` must compute the same value each
  // time, because a step that diverged is repeated to find its first op whose result is not finite. With smoothed or
  // mixed labels, `target_entropy` is the entropy of the targets, below which the loss cannot fall. Returns the
  // gradients.
  //
  // If the loss or a gradient is not finite, the weights stay those before the step. After a divergence, the loop ends
  // when the body of the loop ends, and values that the body reports are ignored. Throws Error for a second call in a
  // step, and in a loop without a model.
  const Gradients& minimise(const std::function<Tensor()>& loss, double target_entropy = 0);
  // The same with a loss that is already computed. The reason of a divergence then names no op.
  const Gradients& minimise(const Tensor& loss, double target_entropy = 0);

 private:
  friend Loop;
  friend Trial;
  explicit Step(Loop& loop) : loop_(loop) {}
  // minimise(), which on a device may decide up to two steps later whether the step diverged: `loss` must own its
  // batch.
  const Gradients& minimise_ahead(const std::function<Tensor()>& loss, double target_entropy);
  void check_may_step() const;
  const Gradients& update(Gradients gradients, const std::function<Tensor()>& loss, double target_entropy);

  Loop& loop_;
  std::int64_t number_ = -1;
  std::optional<Gradients> gradients_;
};

// The settings of a loop.
struct LoopOptions {
  nn::Ema* ema = nullptr;  // updated after each step; its weights are evaluated and saved
  Observer observer = {};
  std::int64_t trace_every = 0;  // steps between two traces; 0: about 200 steps are traced
};

// The steps of a trial, for a range-based for loop (Trial::loop). While the body of the loop runs, random draws belong
// to the current step. An interrupt ends the loop and the trial by an exception, which the study catches.
class Loop {
  // The increment of the iterator finishes a step and begins the next step.
  class Iterator {
   public:
    Step& operator*() const { return owner_->step_; }
    Iterator& operator++() {
      owner_->advance();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return owner_->scope_.has_value(); }

   private:
    friend Loop;
    explicit Iterator(Loop* owner) : owner_(owner) {}
    Loop* owner_;
  };

 public:
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  // For range-based for. begin() starts the first step.
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }
  std::int64_t first() const { return first_; }  // the number of the first step

 private:
  friend Step;
  friend Trial;
  // Without an optimizer, the steps have no minimise().
  Loop(Trial& trial, TrialState& run, nn::Optimizer* optimizer, LoopOptions options);
  void advance();
  void end_step();

  TrialState& run_;
  nn::Optimizer* optimizer_;
  LoopOptions options_;
  Observer layers_;  // of Study::measure_layers()
  const std::int64_t first_;
  Step step_;
  std::optional<StepScope> scope_;  // of the current step; none before the first step and after the last step
};

}  // namespace plumb::lab
