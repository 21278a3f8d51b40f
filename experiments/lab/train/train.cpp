#include "experiments/lab/train/train.h"

#include <algorithm>
#include <cmath>

#include "autograd/autograd.h"
#include "core/backend.h"

namespace plumb::lab {
namespace {

constexpr std::int64_t traced_steps = 200;

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

// Images that are in memory are ready sooner than a thread starts.
std::int64_t loading_threads(const ImageSet& set) { return set.in_files() ? num_threads() : 1; }

}  // namespace

bool train(Arm& arm, Task& task, nn::Optimizer& optimizer, nn::Ema* ema, const AroundStep& around, std::int64_t log_every) {
  const std::int64_t interval = log_every > 0 ? log_every : std::max<std::int64_t>(1, arm.steps() / traced_steps);
  for (const std::int64_t step : arm.each_step()) {
    const auto loss = task.loss_of(step);
    auto after = around ? around(step) : nullptr;
    const double rate = optimizer.learning_rate();
    const Gradients gradients = backward(loss());
    const nn::StepReading reading = optimizer.step_while_finite(gradients);
    if (ema) ema->update();
    if (after) after(gradients);
    after = nullptr;  // what watched the passes is gone before one is repeated
    arm.took({.step = step, .rate = rate, .reading = reading, .loss = loss, .traced = step % interval == 0 || step + 1 == arm.steps()});
  }
  return !arm.has_diverged();
}

ImageTask::ImageTask(const Arm& arm, const nn::Layer& model, Normalization normalization, const Augmentation& augment, double label_smoothing)
    : arm_(arm), model_(model), normalization_(std::move(normalization)), augment_(augment), label_smoothing_(label_smoothing) {}

std::function<Tensor()> ImageTask::loss_of(std::int64_t step) {
  const ImageSet& images = arm_.data().train;
  if (!loader_)
    loader_ = std::make_unique<BatchLoader>(
        images, normalization_,
        LoaderOptions{
            .batch = arm_.options().batch, .seed = arm_.seed(), .augment = augment_, .workers = loading_threads(images), .start_step = step});
  return [this, batch = to_tensors(loader_->next(), images)] { return lab::loss_of(model_(batch.images), batch, label_smoothing_); };
}

Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization, std::int64_t batch, std::int64_t most) {
  const EvaluationMode mode(model);
  return evaluate([&](const Tensor& images) { return model(images); }, set, normalization, batch, most);
}

Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set, const Normalization& normalization,
                    std::int64_t batch, std::int64_t most) {
  check(model != nullptr, "[evaluate] expected a function from images to logits, got an empty one");
  check(set.size() > 0, "[evaluate] expected at least one image, got an empty set");
  check(batch > 0, "[evaluate] expected a batch of at least 1, got {}", batch);
  const std::int64_t size = most > 0 ? std::min(most, set.size()) : set.size();
  const NoGrad no_grad;
  double loss = 0;
  std::int64_t correct = 0;
  for (std::int64_t first = 0; first < size; first += batch) {
    const std::int64_t count = std::min(batch, size - first);
    const Batch part = to_tensors(evaluation_batch(set, normalization, first, count, loading_threads(set)), set);
    const Tensor logits = model(part.images);
    check(logits.defined() && logits.shape() == Shape{count, set.classes}, "[evaluate] expected logits {} for images {}, got {}",
          Shape{count, set.classes}, part.images.shape(), logits.defined() ? to_string(logits.shape()) : "an undefined tensor");
    loss += cross_entropy(logits, part.labels).item() * static_cast<double>(count);
    correct += std::llround(accuracy(logits, part.labels) * static_cast<double>(count));
  }
  return {loss / static_cast<double>(size), static_cast<double>(correct) / static_cast<double>(size)};
}

}  // namespace plumb::lab
