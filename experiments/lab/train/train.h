// The training loop that all studies share.
#pragma once

#include <functional>
#include <string>

#include "autograd/backward.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// The problem that train() solves. The loop needs no knowledge of images or networks.
class Task {
 public:
  virtual ~Task() = default;
  // Returns a function that computes the loss of the step's batch; call it within the step's random scope. The function
  // keeps its batch, so that an earlier step can be repeated when later ones exist. Steps come in order and may start
  // at any number.
  virtual std::function<Tensor()> loss_of(std::int64_t step) = 0;
};

// Minimises the task's loss over the steps of the trial. Call Trial::track() first. Every `log_every`-th step and the
// last step are traced (loss, lr_now, grad_norm); 0 traces about 200 steps. Returns true if the training did not
// diverge; trial.recent_loss() is then its training loss. Otherwise the trial is marked as diverged. If a loss or a
// gradient was not finite, the weights are those before that step. If the loss was above the limit, up to three more
// updates were made. On a device, the numbers of a step are read one or two steps later, with the same results.
bool train(Trial& trial, Task& task, nn::Optimizer& optimizer, nn::Ema* ema = nullptr, const AroundStep& around = {},
           std::int64_t log_every = 0);

// The task of classifying images, with cross-entropy as its loss.
class ImageTask : public Task {
 public:
  // Throws the errors of BatchLoader.
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
