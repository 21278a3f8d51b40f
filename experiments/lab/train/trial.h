// One trial of a study, for the code that runs the trial (the body of the trial): the values on the axes, the options,
// the problem, and functions for steps, training, logging, evaluation, divergence and checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/options/study_options.h"
#include "experiments/lab/problem/problem.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/train/loop.h"
#include "nn/io/weights.h"

namespace plumb::lab {

class TrialState;

// One trial. The member functions throw Error for wrong calls, such as a second call of track() or a forbidden name of
// a value.
class Trial {
 public:
  // The value of this trial on an axis of the study. Throws Error if the point of the trial does not have the axis.
  template <class T>
  T operator[](const Axis<T>& axis) const {
    return axis.value_in(read(axis.name()));
  }
  // The value on the axis of this name; no value if the study has no such axis.
  template <class T>
  std::optional<T> find(const std::string& axis) const {
    const Point& point = read(axis);
    return point.find(axis) ? std::optional(point.get<T>(axis)) : std::nullopt;
  }
  // The values of this trial on all axes.
  const Point& point() const;

  // The options of the call. Options that are axes have the values of this trial's point.
  const StudyOptions& options() const;
  // seed() is the seed of this trial; steps() is the number of training steps of this trial.
  std::uint64_t seed() const;
  std::int64_t steps() const { return options().steps; }
  // The warm-up in steps: the value of --warmup, or else the share of the steps that default_warmup() sets, at first 0.
  std::int64_t warmup() const;
  void default_warmup(double share);
  // A group of options (Study::add), or its defaults if the study has no such group. Options that are axes have the
  // values of this trial's point.
  template <class Group>
  Group group() const {
    return task_settings().group<Group>();
  }
  // The problem of the study, as the type that Study::problem() makes. Throws Error if the problem has another type.
  template <class P>
  const P& problem() const {
    const auto* const wanted = dynamic_cast<const P*>(&problem_of_any_type());
    check(wanted,
          "[trial] expected the problem of the study in Trial::problem<P>(), got another type; vision::images(), "
          "vision::vit() and vision::Trial::loop() need a vision::Study");
    return *wanted;
  }
  // The settings of this trial on which batches and losses may depend. They live as long as the trial.
  const TaskSettings& task_settings() const;
  const std::filesystem::path& folder() const;  // the study folder
  std::filesystem::path weights_file() const;   // the file in which --save-weights stores the weights

  // Sets the network that the record of the trial describes unless track() is called. `card` is the text of its model
  // card (nn/io/pretrained.h).
  void describe_model(const std::string& card);
  // Trains the model with the options of the command line (optimizer, schedule, clipping, moving average) and minimises
  // the loss of the problem. Measures train_loss (mean over the last 20 steps), target_entropy (Task::target_entropy,
  // mean over the same steps, unless it is 0), the values of the problem, and the samples per second if the problem
  // names its samples (DataFacts::samples). Traces loss, lr_now and grad_norm at about 200 steps. After the training,
  // the model has the weights that were evaluated. Throws Error if the initial weights are not the weights that the
  // modules declare for the seed of this trial (nn::audit_init). Calibrated and pretrained models are not checked.
  void train(nn::Layer& model, const Observer& observer = {});

  // The steps of a training loop of one's own, which updates the model (train/loop.h). Calls track().
  //   for (lab::Step& step : trial.loop(model, optimizer)) step.minimise([&] { return mse_loss(model(x), y); });
  Loop loop(nn::Layer& model, nn::Optimizer& optimizer, LoopOptions options = {});
  // The steps of a loop whose parts are called apart: backward(), check_divergence(), Optimizer::step(), log().
  Loop loop();
  // Calibrates a method on the first training batch (nn::calibrate). Call calibrate() before the first step.
  void calibrate(nn::Layer& model);
  // Declares that the model has trained weights. After this call, calibrate() and train() set no weights from data, and
  // train() does not check the initial weights.
  void mark_pretrained();
  // Declares the model that a loop() without arguments trains. Call track() before the first step. Checkpoints,
  // --resume within the trial, --replay, --eval-every and --save-weights then work for the loop. The arguments must
  // live until the body ends. If `ema` is given, the averaged weights are evaluated and saved.
  //
  // If the trial has a checkpoint, the state in the checkpoint is loaded into model, optimizer and average, and the
  // loop continues at the step of the checkpoint. Any other state of the body is not restored. Only one loop may
  // follow. The record of the trial describes this model.
  void track(nn::Layer& model, nn::Optimizer& optimizer, nn::Ema* ema = nullptr);
  // Evaluates the tracked model in its current state. The result has the values of the problem (Problem::evaluate).
  Values evaluate();
  // Sets the names under which the weights of the model are saved.
  void save_under(nn::KeyMap names);

  // Both functions add values to the line of the current step in metrics.jsonl; "loss" and "lr" also appear in the
  // progress. log() also makes the last value of each name a result of the trial. In log(), trace() and measure(), a
  // loss or gradient norm that is not finite ends the trial as diverged (names such as "val_loss" and "grad_norm"). The
  // loop over the steps then ends, and later values are ignored.
  void log(const Values& values);
  void trace(const Values& values);
  // Shows loss and learning rate in the progress, but does not record the two values.
  void show(double loss, double rate);
  // Adds results that belong to the trial and not to a step. The results become columns of results.csv.
  void measure(const Values& values);
  // The recorded values of a name, as pairs of step and value.
  std::vector<std::pair<std::int64_t, double>> traced(const std::string& name) const;
  // Attaches a JSON object to the record of the trial, for files that the study writes (Study::output).
  void attach(const std::string& json);

  // Returns whether the training has diverged: the loss or the gradient norm is not finite, or the loss was above
  // --loss-limit times chance for 20 steps in a row. Call check_divergence() in each step, before the update
  // of the step. If the result is true, the trial is marked as diverged, and the body should return. `loss` must
  // compute the loss of the step again. With smoothed or mixed labels, pass the entropy of the targets
  // (Task::target_entropy), because the loss cannot fall below it.
  bool check_divergence(const Gradients& step, const std::function<Tensor()>& loss, double target_entropy = 0);
  // Whether the trial has been marked as diverged.
  bool has_diverged() const;
  // Marks the trial as diverged at this step (counted from 0), by a rule of the body. The body should return
  // afterwards. The step becomes the result "diverged_at". The values of the trial stay in the files, but are left out
  // of the statistics over seeds.
  void mark_diverged(std::int64_t step, const std::string& reason);
  // The mean loss over the last 20 steps that check_divergence() or took() have seen. The value is `unknown` before the
  // first step.
  double recent_loss() const;

  // Shows a warning on the progress line of this trial, in place of the values.
  void warn(const std::string& text);
  // Prints a line of text on stderr, above the progress.
  void note(const std::string& text);

 private:
  friend struct TrainedAt;
  friend void run_body(TrialState& run, const std::function<void(Trial&)>& body);
  explicit Trial(TrialState& run) : run_(run) {}
  const Problem& problem_of_any_type() const;
  const Point& read(const std::string& axis) const;  // the point, after it noted that the body reads this axis

  TrialState& run_;
};

}  // namespace plumb::lab
