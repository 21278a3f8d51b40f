// Which of four kinds of deep fully connected networks train? The study repeats the experiment that introduced ReZero.
#include <cmath>

#include "nn/models/deep_mlp.h"
#include "plumb/vision.h"

namespace plumb::vision {
namespace {

// The mean losses over the steps of epochs 1, 2, 3, 5 and 10, with the names "epoch_1", "epoch_2" and so on. Epochs
// without a step are left out.
Values epoch_losses(const lab::Trial& trial) {
  const std::int64_t length = vision::images(trial).data().train.size() / trial.options().batch;
  const auto losses = trial.traced("loss");
  Values values;
  for (const std::int64_t epoch : {1, 2, 3, 5, 10}) {
    double sum = 0, count = 0;
    for (const auto& [step, loss] : losses)
      if (step / length + 1 == epoch) sum += loss, ++count;
    if (count > 0) values.emplace_back(fmt::format("epoch_{}", epoch), sum / count);
  }
  return values;
}

struct DeepMlp : Study {
  DeepMlp()
      : Study("deep_mlp", "Trains deep fully connected networks of four kinds: plain, residual, normalised and ReZero.",
              {.network = false, .optimization = false}) {
    // No limit of the loss, because losses in the first epoch of this experiment reach 1e5.
    defaults({.batch = 100, .loss_limit = 0, .seeds = {0, 1, 2}});
    images().normalization = NormalizationKind::half;  // maps pixels to [-1, 1]
    cli().section("Model");
    cli().option("--width", &width, "Width of the hidden layers").at_least(1).at_most(largest_size);
    cli().section("Training");
    cli().option("--lr", &lr, "Learning rate of Adagrad").above(0);
    cli().examples({"--data fashion-mnist --data-dir DIR", "--data cifar-10 --data-dir DIR --steps 5000 --seeds 0"});
    columns({train_loss, "jacobian_start", "jacobian_start_error", "jacobian_end", "epoch_1"});
  }

  const Axis<std::string> method = axis("--methods", nn::deep_mlp_methods(), "Kinds of hidden layers to compare")
                                       .one_of("method", nn::deep_mlp_methods());
  const Axis<std::int64_t> depth = depths({64}, "Numbers of hidden layers");
  std::int64_t width = 256;
  double lr = 0.01;

  void train(lab::Trial& trial) const {
    const ImageSet& set = vision::images(trial).data().train;
    nn::DeepMlp model({.inputs = set.image_bytes(),
                       .width = width,
                       .depth = trial[depth],
                       .classes = set.classes,
                       .method = trial[method],
                       .seed = trial.seed()});
    nn::audit_init(model, trial.seed());
    // Ten random inputs, as in ReZero's notebook. The Jacobian of a batch is the mean of the Jacobians of its samples.
    const Tensor noise = random_normal({10, set.image_bytes()}, trial.seed(), "jacobian.inputs");
    const Estimate start = mean_squared_singular_value([&](const Tensor& x) { return model.hidden(x); },
                                                       model.first(noise).detach(), {.seed = trial.seed()});
    trial.measure({{"jacobian_start", start.value}, {"jacobian_start_error", start.standard_error}});

    nn::Adagrad optimizer(model.parameters(), {.lr = nn::warmup_constant(lr, trial.warmup())});
    const auto task = trial.problem<ImageProblem>().task(trial.task_settings(), model);
    for (lab::Step& step : trial.loop(model, optimizer, {.trace_every = 1}))
      step.minimise(task->loss_of(step.number()));
    if (trial.has_diverged()) return;
    const Estimate end =
        mean_squared_singular_value([&](const Tensor& x) { return model(x); }, noise, {.seed = trial.seed()});
    if (!std::isfinite(end.value))
      return trial.mark_diverged(trial.steps() - 1, "the Jacobian is not finite");  // caused by the last update
    trial.measure(epoch_losses(trial));
    trial.measure({{"train_loss", trial.recent_loss()}, {"jacobian_end", end.value}});
  }
};

}  // namespace

}  // namespace plumb::vision

int plumb::lab::deep_mlp(int argc, const char* const* argv) { return run<vision::DeepMlp>(argc, argv); }
