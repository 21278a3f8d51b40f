// Optimizers and learning-rate schedules, for experiments that let users choose.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "experiments/lab/options/augment_options.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

class Cli;
struct StudyOptions;

enum class OptimizerKind { adamw, sgd, lamb, adagrad };
constexpr auto names_of(OptimizerKind) { return std::array{"adamw", "sgd", "lamb", "adagrad"}; }

// Courses of the learning rate. All rise linearly to `peak` in `warmup` steps and then are as follows.
enum class ScheduleKind {
  constant,      // peak
  cosine,        // peak (1 + cos(pi t)) / 2, t from 0 to 1 over the remaining steps
  inverse_sqrt,  // peak sqrt(w / (s + 1)) in step s, w the warm-up, at least 1 (Vaswani et al. 2017)
  step           // peak until half of the remaining steps are done, a tenth until three quarters are, then a hundredth
};
constexpr auto names_of(ScheduleKind) { return std::array{"constant", "cosine", "inverse_sqrt", "step"}; }

// How a study trains.
struct OptimizationOptions {
  double lr = 1e-3;  // peak
  OptimizerKind optimizer = OptimizerKind::adamw;
  ScheduleKind schedule = ScheduleKind::cosine;
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

// What reports call them: "SGD with Nesterov's momentum 0.9", "cosine to 0".
const char* title(OptimizerKind optimizer);
const char* title(ScheduleKind schedule);

// The optimizer with its own defaults but for what is given here; sgd has Nesterov's momentum 0.9.
std::unique_ptr<nn::Optimizer> make_optimizer(OptimizerKind optimizer, std::vector<nn::Parameter> parameters,
                                              const nn::LearningRate& rate, double weight_decay, double clip_norm);

// Throws Error unless 0 <= warmup <= steps.
nn::LearningRate make_schedule(ScheduleKind schedule, double peak, std::int64_t warmup, std::int64_t steps);

}  // namespace plumb::lab
