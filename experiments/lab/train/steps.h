// The loop of a trial over the step numbers.
#pragma once

#include <cstdint>
#include <optional>

#include "experiments/lab/train/step_scope.h"

namespace plumb::lab {

class TrialState;

// The step numbers of a trial, for a range-based for loop. While the body of the loop runs, random draws belong to the
// current step. An interrupt ends the loop and the trial by an exception, which the study catches.
class Steps {
 public:
  // An iterator for range-based for. The increment of the iterator finishes a step and begins the next step.
  class Iterator {
   public:
    std::int64_t operator*() const { return owner_->step_; }
    Iterator& operator++() {
      owner_->advance();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return owner_->scope_.has_value(); }

   private:
    friend Steps;
    explicit Iterator(Steps* owner) : owner_(owner) {}
    Steps* owner_;
  };

  explicit Steps(TrialState& run);
  ~Steps();
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;
  // For range-based for. begin() starts the first step.
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }
  std::int64_t first() const { return first_; }  // the number of the first step

 private:
  void advance();

  TrialState& run_;
  std::int64_t first_, step_;
  std::optional<StepScope> scope_;
};

}  // namespace plumb::lab
