// The training loop that all studies share.
#pragma once

#include <functional>
#include <string>

#include "autograd/backward.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// What the loop must know of a problem: neither images nor networks.
class Task {
 public:
  virtual ~Task() = default;
  // The loss of a step's batch, to be called within the step's random scope: a function that keeps the batch, so that
  // an earlier step can be repeated while a later one's is there. Steps come in order; the first may be any.
  virtual std::function<Tensor()> loss_of(std::int64_t step) = 0;
};

// Minimises the task's loss over the steps of the trial, which has been told what is trained (Trial::track); or marks
// the trial as diverged, with its weights as they were before the first step whose loss or gradients were not finite
// (of a loss above the limit: up to three updates later). Every `log_every`-th step is traced, and the last (loss,
// lr_now, grad_norm); 0: as many as make about 200. Returns whether it ended well: trial.recent_loss() then is its
// training loss. On a device, a step's numbers are read a step or two later; what is reported is the same.
bool train(Trial& trial, Task& task, nn::Optimizer& optimizer, nn::Ema* ema = nullptr, const AroundStep& around = {},
           std::int64_t log_every = 0);

// The cross-entropy of images.
class ImageTask : public Task {
 public:
  // Errors: BatchLoader.
  ImageTask(const Trial& trial, const nn::Layer& model, Normalization normalization, const Augmentation& augment = {},
            double label_smoothing = 0);
  std::function<Tensor()> loss_of(std::int64_t step) override;

 private:
  const Trial& trial_;
  const nn::Layer& model_;
  Normalization normalization_;
  Augmentation augment_;
  double label_smoothing_;
  std::unique_ptr<BatchLoader> loader_;
};
}  // namespace plumb::lab
