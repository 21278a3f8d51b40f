// The training loop that all studies share.
#pragma once

#include <functional>
#include <string>

#include "autograd/backward.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// The problem that train() solves. train() knows only this interface, not images or networks.
class Task {
 public:
  virtual ~Task() = default;
  // Returns a function that computes the loss of the batch of step `step`. Call the function within the random scope of
  // the step. The function keeps its batch, so that the step can be repeated after later steps have begun. The steps
  // come in order and may start at any number.
  virtual std::function<Tensor()> loss_of(std::int64_t step) = 0;
};

// Minimises the loss of the task over the steps of the trial. Call Trial::track() before train(). Every `log_every`-th
// step and the last step are traced (loss, lr_now, grad_norm); if `log_every` is 0, about 200 steps are traced. Returns
// true if the training did not diverge; the training loss is then trial.recent_loss().
//
// If the training diverged, the trial is marked as diverged. If a loss or a gradient was not finite, the model has the
// weights before that step. If the loss was above the limit, up to three more updates were made. On a device, the
// numbers of a step are read one or two steps later, and the results are the same.
bool train(Trial& trial, Task& task, nn::Optimizer& optimizer, nn::Ema* ema = nullptr, const AroundStep& around = {},
           std::int64_t log_every = 0);

// The task of classifying images, with cross-entropy as its loss.
class ImageTask : public Task {
 public:
  // Throws the same errors as BatchLoader.
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
