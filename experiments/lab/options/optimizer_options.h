// Optimizers and learning-rate schedules by name, for experiments that let users choose.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/lab/options/augment_options.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

class Cli;
struct StudyOptions;

// How a study trains.
struct OptimizationOptions {
  double lr = 1e-3;                                      // peak
  std::string optimizer = "adamw", schedule = "cosine";  // names below
  double weight_decay = 0.05, clip_norm = 0;
  AugmentOptions augment;
  double ema_decay =
      0;  // above 0: the evaluation has the moving average of the weights, with nn::Ema's warm-up of this decay

  void declare(Cli& cli);
  std::unique_ptr<nn::Optimizer> make(std::vector<nn::Parameter> parameters, std::int64_t warmup,
                                      std::int64_t steps) const;
  // For reports; `rates` are those of an axis, `warmup` says how long the warm-up is.
  std::string describe(const StudyOptions& run, const std::string& rates, const std::string& warmup) const;
  std::string describe_evaluated() const;
};

const std::vector<std::string>& optimizer_names();  // adamw, sgd, lamb, adagrad
const std::vector<std::string>& schedule_names();   // constant, cosine, inverse_sqrt, step

// What reports call them: "SGD with Nesterov's momentum 0.9", "cosine to 0". Throw as the makers do.
std::string optimizer_title(const std::string& name);
std::string schedule_title(const std::string& name);

// The optimizer with its own defaults but for what is given here; sgd has Nesterov's momentum 0.9. Throws Error that
// lists the names for another.
std::unique_ptr<nn::Optimizer> make_optimizer(const std::string& name, std::vector<nn::Parameter> parameters,
                                              const nn::LearningRate& rate, double weight_decay, double clip_norm);

// All rise linearly to `peak` in `warmup` steps, 0 <= warmup <= steps, and then are
//   constant      peak
//   cosine        peak (1 + cos(pi t)) / 2, t from 0 to 1 over the remaining steps
//   inverse_sqrt  peak sqrt(w / (s + 1)) in step s, w the warm-up, at least 1 (Vaswani et al. 2017)
//   step          peak until half of the remaining steps are done, a tenth until three quarters are, then a hundredth
// Throws Error that lists the names for another.
nn::LearningRate make_schedule(const std::string& name, double peak, std::int64_t warmup, std::int64_t steps);

}  // namespace plumb::lab
