#include "experiments/lab/options/optimizer_options.h"

#include <algorithm>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/options/study_options.h"

namespace plumb::lab {
namespace {

// A linear warm-up from `first` to `peak`, then a cosine decay to `last`.
nn::LearningRate cosine_between(double first, double peak, double last, std::int64_t warmup, std::int64_t steps) {
  return nn::LearningRate([=, shape = nn::cosine(1, steps - warmup)](std::int64_t s) {
    if (s < warmup) return first + (peak - first) * static_cast<double>(s) / static_cast<double>(warmup);
    return last + (peak - last) * shape.at(s - warmup);
  });
}

}  // namespace

void OptimizationOptions::declare(Cli& cli) {
  cli.section("Training");
  cli.option("--lr", &lr, "Peak learning rate").above(0);
  cli.option("--optimizer", &optimizer, "Optimizer (sgd: with Nesterov momentum 0.9)").one_of("optimizer");
  cli.option("--schedule", &schedule, "Schedule of the learning rate after the warm-up").one_of("schedule");
  cli.option("--weight-decay", &weight_decay, "Weight decay; it applies to weights, not to other parameters")
      .at_least(0);
  cli.option("--clip-norm", &clip_norm,
             "Largest norm of all gradients together, to which they are clipped; 0: no clipping")
      .at_least(0);
  cli.option("--ema-decay", &ema_decay, "Evaluate a moving average of the weights with this decay; 0: no average")
      .at_least(0)
      .below(1);
}

std::unique_ptr<nn::Optimizer> OptimizationOptions::make(std::vector<nn::Parameter> parameters, std::int64_t warmup,
                                                         std::int64_t steps) const {
  return make_optimizer(optimizer, std::move(parameters),
                        ends && schedule == ScheduleKind::cosine
                            ? cosine_between(std::min(ends->first, lr), lr, std::min(ends->second, lr), warmup, steps)
                            : make_schedule(schedule, lr, warmup, steps),
                        weight_decay, clip_norm);
}

std::string OptimizationOptions::describe(const StudyOptions& run, const std::string& rates,
                                          const std::string& warmup) const {
  return fmt::format("{} steps of batch {}, {}, decay {} on weights, peak learning rate {}, warm-up {}, {}{}",
                     run.steps, run.batch, title(optimizer), weight_decay, rates, warmup,
                     ends && schedule == ScheduleKind::cosine
                         ? fmt::format("cosine to {:g}", std::min(ends->second, lr))
                         : title(schedule),
                     clip_norm > 0 ? fmt::format(", gradients clipped to norm {}", clip_norm) : "");
}

std::string OptimizationOptions::describe_evaluated() const {
  return ema_decay > 0 ? fmt::format("moving average of the weights, decay {}{}", ema_decay,
                                     ema_warm_up ? " after a warm-up" : "")
                       : "weights of the last step";
}

const char* title(OptimizerKind optimizer) {
  constexpr const char* titles[] = {"AdamW", "SGD with Nesterov momentum 0.9", "LAMB", "Adagrad"};
  return titles[static_cast<int>(optimizer)];
}

const char* title(ScheduleKind schedule) {
  constexpr const char* titles[] = {
      "constant", "cosine to 0", "inverse square root of the step",
      "reduced to a tenth after half of the steps and to a hundredth after three quarters"};
  return titles[static_cast<int>(schedule)];
}

std::unique_ptr<nn::Optimizer> make_optimizer(OptimizerKind optimizer, std::vector<nn::Parameter> ps,
                                              const nn::LearningRate& rate, double weight_decay, double clip_norm) {
  switch (optimizer) {
    case OptimizerKind::sgd:
      return std::make_unique<nn::Sgd>(
          std::move(ps),
          nn::SgdOptions{
              .lr = rate, .momentum = 0.9, .nesterov = true, .weight_decay = weight_decay, .clip_norm = clip_norm});
    case OptimizerKind::lamb:
      return std::make_unique<nn::Lamb>(
          std::move(ps), nn::LambOptions{.lr = rate, .weight_decay = weight_decay, .clip_norm = clip_norm});
    case OptimizerKind::adagrad:
      return std::make_unique<nn::Adagrad>(
          std::move(ps), nn::AdagradOptions{.lr = rate, .weight_decay = weight_decay, .clip_norm = clip_norm});
    case OptimizerKind::adamw:
      break;
  }
  return std::make_unique<nn::AdamW>(
      std::move(ps), nn::AdamWOptions{.lr = rate, .weight_decay = weight_decay, .clip_norm = clip_norm});
}

nn::LearningRate make_schedule(ScheduleKind schedule, double peak, std::int64_t warmup, std::int64_t steps) {
  check(0 <= warmup && warmup <= steps, "[learning_rate] expected warm-up steps in 0..{}, got {}", steps, warmup);
  const std::int64_t rest = std::max<std::int64_t>(steps - warmup, 1);
  switch (schedule) {
    case ScheduleKind::constant:
      return nn::warmup_constant(peak, warmup);
    case ScheduleKind::inverse_sqrt:
      return nn::warmup_inverse_sqrt(peak, std::max<std::int64_t>(warmup, 1));
    case ScheduleKind::step:
      return nn::warmed_up(nn::step_decay(peak, {(rest + 1) / 2, (3 * rest + 3) / 4}), warmup);
    case ScheduleKind::cosine:
      break;
  }
  return nn::warmup_cosine(peak, warmup, steps);
}

}  // namespace plumb::lab
