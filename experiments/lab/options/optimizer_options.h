// The command-line options for the optimizer and the learning-rate schedule.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

class Cli;
struct StudyOptions;

// The values of --optimizer.
enum class OptimizerKind { adamw, sgd, lamb, adagrad };
constexpr auto names_of(OptimizerKind) { return std::array{"adamw", "sgd", "lamb", "adagrad"}; }

// The values of --schedule. In every schedule, the learning rate rises linearly to `peak` in the first `warmup` steps.
// After the warm-up, the learning rate is:
enum class ScheduleKind {
  constant,      // peak
  cosine,        // peak (1 + cos(pi t)) / 2, t from 0 to 1 over the remaining steps
  inverse_sqrt,  // peak sqrt(w / (s + 1)) in step s, where w = max(warmup, 1) (Vaswani et al. 2017)
  step           // peak for the first half of the remaining steps, peak / 10 for the third quarter, then peak / 100
};
constexpr auto names_of(ScheduleKind) { return std::array{"constant", "cosine", "inverse_sqrt", "step"}; }

// The values of the options for the training of a network.
struct OptimizationOptions {
  double lr = 1e-3;  // the peak learning rate
  OptimizerKind optimizer = OptimizerKind::adamw;
  ScheduleKind schedule = ScheduleKind::cosine;
  double weight_decay = 0.05, clip_norm = 0;
  // The decay of a moving average of the weights (nn::Ema, which warms the decay up). If the decay is above 0, the
  // averaged weights are evaluated instead of the weights.
  double ema_decay = 0;
  // Settings that no option sets, for networks whose published training differs: whether the decay of the average has a
  // warm-up, and the ends of the cosine schedule.
  bool ema_warm_up = true;
  // The rates of the cosine schedule in its first step and at its end, in place of peak / warmup and 0. A rate above
  // the peak counts as the peak.
  std::optional<std::pair<double, double>> ends = {};

  // Declares the options in the section Training.
  void declare(Cli& cli);
  // Makes the optimizer of `parameters` for a trial of `steps` steps. The first `warmup` steps are the warm-up. Throws
  // Error unless 0 <= warmup <= steps.
  std::unique_ptr<nn::Optimizer> make(std::vector<nn::Parameter> parameters, std::int64_t warmup,
                                      std::int64_t steps) const;
  // A text for reports. `rates` lists the learning rates, and `warmup` says how long the warm-up is.
  std::string describe(const StudyOptions& run, const std::string& rates, const std::string& warmup) const;
  // A text for reports that says which weights are evaluated.
  std::string describe_evaluated() const;
};

// The names of an optimizer and of a schedule in reports: "SGD with Nesterov momentum 0.9", "cosine to 0".
const char* title(OptimizerKind optimizer);
const char* title(ScheduleKind schedule);

// Makes an optimizer. Settings that are not arguments have the defaults of the optimizer. SGD has Nesterov momentum
// 0.9.
std::unique_ptr<nn::Optimizer> make_optimizer(OptimizerKind optimizer, std::vector<nn::Parameter> parameters,
                                              const nn::LearningRate& rate, double weight_decay, double clip_norm);

// The learning rate of each step of a trial of `steps` steps. Throws Error unless 0 <= warmup <= steps.
nn::LearningRate make_schedule(ScheduleKind schedule, double peak, std::int64_t warmup, std::int64_t steps);

}  // namespace plumb::lab
