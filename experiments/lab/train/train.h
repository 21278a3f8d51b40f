// The training loop that all studies share.
#pragma once

#include <functional>
#include <string>

#include "autograd/backward.h"
#include "experiments/lab/train/trial.h"

namespace plumb::lab {

// Minimises the loss of the task over the steps of the trial. Call Trial::track() before train(). Every `log_every`-th
// step and the last step are traced (loss, lr_now, grad_norm); if `log_every` is 0, about 200 steps are traced. Returns
// true if the training did not diverge; the training loss is then trial.recent_loss().
//
// If the training diverged, the trial is marked as diverged. If a loss or a gradient was not finite, the model has the
// weights before that step. If the loss was above the limit, up to three more updates were made. On a device, the
// numbers of a step are read one or two steps later, and the results are the same.
bool train(Trial& trial, Task& task, nn::Optimizer& optimizer, nn::Ema* ema = nullptr, const AroundStep& around = {},
           std::int64_t log_every = 0);

}  // namespace plumb::lab
