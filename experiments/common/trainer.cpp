#include "experiments/common/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "autograd/autograd.h"
#include "core/backend.h"
#include "experiments/common/optimization.h"
#include "experiments/common/training_step.h"
#include "nn/optim/ema.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t averaged_steps = 20;  // of train_loss
constexpr std::int64_t patience = 20;        // steps that the loss may stay above the bound
constexpr double bound_in_log_classes = 10;

using Clock = std::chrono::steady_clock;

// Repeats a step with every op checked: the message of the first that makes a non-finite number. The pass is a function of weights,
// batch, seed and step, so it dies where it died before.
std::string first_non_finite_op(const std::function<Tensor()>& loss) {
  const AnomalyMode anomaly;
  try {
    (void)backward(loss());
  } catch (const Error& e) {
    std::string message = e.what();
    std::ranges::replace(message, '\n', ' ');
    return message;
  }
  return "the gradient's norm overflows though every gradient is finite";
}

// Evaluation mode while it lives; then every module has its own mode again.
class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& model) {
    model.each_module([&](nn::Module& m) { modes_.emplace_back(&m, m.training()); });
    model.eval();
  }
  ~EvaluationMode() {
    for (const auto& [module, training] : modes_) module->train(training);  // parents first: what is below one comes after it
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  std::vector<std::pair<nn::Module*, bool>> modes_;
};

double loss_limit(std::int64_t classes) { return bound_in_log_classes * std::log(static_cast<double>(classes)); }

}  // namespace

DivergenceWatch::DivergenceWatch(std::int64_t classes) : classes_(classes) {}

bool DivergenceWatch::diverged(const Gradients& step) {
  above_ = step.loss() > loss_limit(classes_) ? above_ + 1 : 0;
  finite_ = std::isfinite(step.loss()) && std::isfinite(step.norm());
  return !finite_ || above_ >= patience;
}

std::string DivergenceWatch::reason(const std::function<Tensor()>& loss) const {
  if (!finite_) return first_non_finite_op(loss);
  return fmt::format("loss above {:.4g}, ten times ln({}), for {} steps", loss_limit(classes_), classes_, patience);
}

Batch to_tensors(const HostBatch& batch, const ImageSet& set) {
  const Tensor images(array_from(std::span<const float>(batch.images), {batch.size(), set.channels, set.height, set.width}, defaults().device));
  return {cast(images, defaults().dtype), integers(batch.labels, {batch.size()})};
}

TrainOutcome train(nn::Classifier& model, const ImageData& data, const Normalization& normalization, const TrainSettings& s,
                   const TrainObserver& observer) {
  const auto optimizer =
      make_optimizer(s.optimizer, model.parameters(), make_schedule(s.schedule, s.lr, s.warmup, s.steps), s.weight_decay, s.clip_norm);
  std::optional<nn::Ema> ema;
  BatchLoader loader(data.train, normalization, {.batch = s.batch, .seed = s.seed, .augment = s.augment});
  TrainOutcome outcome;
  std::vector<double> losses;
  DivergenceWatch watch(data.train.classes);
  model.train();

  const Clock::time_point start = Clock::now();
  for (std::int64_t step = 0; step < s.steps; ++step) {
    if (observer.stop && observer.stop()) {
      outcome.stopped = true;
      return outcome;
    }
    const TrainingStep scope(s.seed, step);
    const Batch batch = to_tensors(loader.next(), data.train);
    if (step == 0) {
      nn::calibrate(model, batch.images);
      if (s.ema_decay > 0) ema.emplace(model.parameters(), nn::EmaOptions{.decay = s.ema_decay, .warm_up = true});
    }
    std::optional<PassportProbe> probe;
    if (observer.wants_passport && observer.wants_passport(step)) probe.emplace(model.stack());
    const auto loss = [&] { return cross_entropy(model(batch.images), batch.labels); };
    const Gradients gradients = backward(loss());

    StepRecord record{
        .step = step, .loss = gradients.loss(), .lr = optimizer->learning_rate(), .grad_norm = gradients.norm(), .passport = {}, .divergence = {}};
    const bool diverged = watch.diverged(gradients);
    if (!diverged) {
      optimizer->step(gradients);
      if (ema) ema->update();
    }
    if (probe) record.passport = probe->finish(gradients);
    probe.reset();
    if (diverged) record.divergence = watch.reason(loss);
    if (observer.on_step) observer.on_step(record);
    if (!record.divergence.empty()) {
      outcome.diverged_at = step;
      outcome.divergence = record.divergence;
      break;
    }
    losses.push_back(record.loss);
    ++outcome.steps;
  }
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  outcome.images_per_second = static_cast<double>(outcome.steps * s.batch) / std::max(outcome.seconds, 1e-9);
  if (outcome.diverged_at) return outcome;

  const auto last = static_cast<std::ptrdiff_t>(std::min<std::size_t>(losses.size(), averaged_steps));
  outcome.train_loss = std::accumulate(losses.end() - last, losses.end(), 0.0) / static_cast<double>(last);
  std::optional<nn::EmaScope> averaged;
  if (ema) averaged.emplace(*ema);
  const Evaluation evaluation = evaluate(model, data.validation, normalization);
  if (!std::isfinite(evaluation.loss)) {  // the last update did it
    outcome.train_loss.reset();
    outcome.diverged_at = s.steps - 1;
    outcome.divergence = "the validation loss is not finite";
    return outcome;
  }
  outcome.val_loss = evaluation.loss;
  outcome.val_accuracy = evaluation.accuracy;
  return outcome;
}

Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization, std::int64_t batch) {
  const EvaluationMode mode(model);
  return evaluate([&](const Tensor& images) { return model(images); }, set, normalization, batch);
}

Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set, const Normalization& normalization,
                    std::int64_t batch) {
  check(model != nullptr, "[evaluate] expected a function from images to logits, got an empty one");
  check(set.size() > 0, "[evaluate] expected at least one image, got an empty set");
  check(batch > 0, "[evaluate] expected a batch of at least 1, got {}", batch);
  const NoGrad no_grad;
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t first = 0; first < set.size(); first += batch) {
    const std::int64_t count = std::min(batch, set.size() - first);
    const Batch part = to_tensors(evaluation_batch(set, normalization, first, count), set);
    const Tensor logits = model(part.images);
    check(logits.defined() && logits.shape() == Shape{count, set.classes}, "[evaluate] expected logits {} for images {}, got {}",
          Shape{count, set.classes}, part.images.shape(), logits.defined() ? to_string(logits.shape()) : "an undefined tensor");
    loss += cross_entropy(logits, part.labels).item() * static_cast<double>(count);
    correct += std::llround(accuracy(logits, part.labels) * static_cast<double>(count));
  }
  return {loss / static_cast<double>(set.size()), static_cast<double>(correct) / static_cast<double>(set.size())};
}

}  // namespace plumb::lab
