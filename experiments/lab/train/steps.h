// The loops of a body: over the numbers of the steps, or over the batches.
#pragma once

#include <cstdint>
#include <optional>

#include "experiments/lab/data/batch.h"
#include "experiments/lab/train/training_step.h"

namespace plumb::lab {

class TrialState;

// The numbers of a trial's steps, each of which is a step of its own for all random draws while the loop's body runs.
// An interrupt ends the loop, and the trial, by an exception that the study catches.
class Steps {
 public:
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
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }

 private:
  friend class Batches;
  void advance();

  TrialState& run_;
  std::int64_t first_, step_;
  std::optional<TrainingStep> scope_;
};

// The same with the training batch of each step.
class Batches {
 public:
  class Iterator {
   public:
    const Batch& operator*() const { return owner_->batch_; }
    Iterator& operator++() {
      owner_->advance();
      return *this;
    }
    bool operator!=(std::nullptr_t) const { return owner_->steps_.scope_.has_value(); }

   private:
    friend Batches;
    explicit Iterator(Batches* owner) : owner_(owner) {}
    Batches* owner_;
  };

  Batches(TrialState& run, const Augmentation& augment);
  Iterator begin() {
    advance();
    return Iterator(this);
  }
  std::nullptr_t end() const { return nullptr; }

 private:
  void advance();

  Steps steps_;
  BatchLoader loader_;
  Batch batch_;
};

}  // namespace plumb::lab
