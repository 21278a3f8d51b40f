// One trial of a study, as its body sees it: the position on the axes, the data, and functions for batches, training,
// logging, evaluation, divergence and checkpoints.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/data/batch.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/record.h"
#include "experiments/lab/train/divergence.h"
#include "experiments/lab/train/steps.h"
#include "experiments/lab/train/training_step.h"
#include "nn/io/weights.h"
#include "nn/models/vit.h"
#include "nn/optim/ema.h"
#include "nn/optim/optimizer.h"

namespace plumb::lab {

template <class T>
class Axis;
class TrialState;

// The options of a ViT that a study body chooses. Every other option comes from the axis with the name of the option,
// or else from the command line: "--dims" sets --dim. A field of nn::ViTOptions without such an option (mlp_ratio)
// keeps its default; the body can set it in the result of Trial::vit().
struct ViTChoice {
  std::optional<std::int64_t> depth = {};   // default: the value of the axis "depth"
  std::optional<nn::GateChoice> gate = {};  // default: the value of the axis "gate"
};

// A function that Trial::train calls before each step. It may return a function, which is called after the step's
// update with the step's gradients.
using AroundStep = std::function<std::function<void(const Gradients& gradients)>(std::int64_t step)>;

// One trial. Its functions throw Error for wrong calls, such as two calls of track() or a forbidden name of a value.
class Trial {
 public:
  explicit Trial(TrialState& run) : run_(run) {}  // called by the study

  // The value of this trial on an axis of the study. Throws Error if the point has no such axis.
  template <class T>
  T operator[](const Axis<T>& axis) const {
    return read(axis.name()).template get<T>(axis.name());
  }
  // The values of this trial on all axes.
  const Point& point() const;

  // The options of the call, with the values of the point.
  const StudyOptions& options() const;
  // The seed of this trial, and its number of training steps.
  std::uint64_t seed() const;
  std::int64_t steps() const { return options().steps; }
  std::int64_t warmup() const;  // in steps: --warmup, or the recipe of the network from vit(), or 0
  // The training and validation images, and how their pixels are normalised.
  const ImageData& data() const;
  const Normalization& normalization() const;
  const std::filesystem::path& folder() const;  // the run folder
  std::filesystem::path weights_file() const;   // where --save-weights stores this trial's weights

  // Options of a ViT for the images of the data set, with this trial's seed and the options of the command line (their
  // defaults if the program does not declare them). The record of the trial describes this network, unless track() is
  // called.
  nn::ViTOptions vit(const ViTChoice& choice = {});
  // Trains the model with the options of the command line (optimizer, schedule, clipping, moving average) and minimises
  // the cross-entropy. Measures train_loss (mean over the last 20 steps), val_loss, val_accuracy and images_per_second.
  // Traces loss, lr_now and grad_norm at about 200 steps. The model ends with the weights that were evaluated. Throws
  // Error if the initial weights are not those that the modules declare for this trial's seed (nn::audit_init).
  // Calibrated and pretrained models are not checked.
  void train(nn::Layer& model, const AroundStep& around = {});

  // The training batches of this trial, one for each of its --steps steps; and the step numbers without batches.
  Batches batches(const Augmentation& augment = {});
  Steps each_step();
  // Runs the calibration of a method on the first training batch, before the first step (nn::calibrate).
  void calibrate(nn::Layer& model);
  // Declares that the model has trained weights. calibrate() and train() then set no weights from data, and train()
  // does not check the initial weights.
  void mark_pretrained();
  [[deprecated("mark_pretrained")]] void is_trained() { mark_pretrained(); }
  // Declares what a custom loop trains; call it before the first step. Then checkpoints, --resume within the trial,
  // --replay, --eval-every and --save-weights work for the loop. The arguments must live until the body ends. If `ema`
  // is given, the averaged weights are evaluated and saved. If the trial has a checkpoint, its state is loaded into
  // model, optimizer and average, and the loop continues from there; any other state of the body is not restored. Only
  // one loop may follow, by batches() or each_step(). The record of the trial describes this model.
  void track(nn::Layer& model, nn::Optimizer& optimizer, nn::Ema* ema = nullptr);
  // The evaluation of the tracked model in its current state: val_loss and val_accuracy, or the values of
  // track_evaluation().
  Values evaluate();
  // track_evaluation() sets how to evaluate the tracked model, for models that do not map images to logits.
  // save_under() sets the names under which its weights are saved.
  void track_evaluation(std::function<Values()> evaluate);
  void save_under(nn::KeyMap names);

  // Both add values to the step's line of metrics.jsonl; "loss" and "lr" also appear in the progress. log() also makes
  // the last value of each name a result of the trial. In log(), trace() and measure(), a loss or gradient norm (see
  // tells_divergence() in divergence.h) that is not finite ends the trial as diverged: the loop over the steps ends,
  // and later values are ignored.
  void log(const Values& values);
  void trace(const Values& values);
  // Shows loss and learning rate in the progress, without recording them.
  void show(double loss, double rate);
  // Adds results of the trial that belong to no step: columns of results.csv.
  void measure(const Values& values);
  // The recorded values of a name, as pairs of step and value.
  std::vector<std::pair<std::int64_t, double>> traced(const std::string& name) const;
  // Attaches a JSON object to the trial's record, for files that the study makes (Study::output).
  void attach(const std::string& json);

  // Returns whether the training has diverged (divergence.h). Call it in each step, before the step's update. If it
  // returns true, the trial is marked as diverged and the body should return. `loss` must compute the step's loss
  // again.
  bool check_divergence(const Gradients& step, const std::function<Tensor()>& loss);
  // Reports a step whose update was made with Optimizer::step_while_finite. It makes the decision of check_divergence()
  // and records the loss as soon as the step's numbers have arrived: at most two steps later, and before anything else
  // is logged, evaluated or written. After a divergence, the loop over the steps ends, and values that the body reports
  // for later steps are ignored.
  void took(const TakenStep& step);
  [[deprecated("check_divergence")]] bool diverges(const Gradients& step, const std::function<Tensor()>& loss) {
    return check_divergence(step, loss);
  }
  // Whether the trial has been marked as diverged.
  bool has_diverged() const;
  // Marks the trial as diverged at this step (counted from 0) by a rule of the body; the body should return afterwards.
  // The step becomes the result "diverged_at". The values of the trial stay in the files but do not enter the
  // statistics over seeds.
  void mark_diverged(std::int64_t step, const std::string& reason);
  [[deprecated("mark_diverged")]] void diverged(std::int64_t step, const std::string& reason) {
    mark_diverged(step, reason);
  }
  // The mean loss over the last 20 steps that check_divergence() or took() have seen; unknown before the first.
  double recent_loss() const;
  // The rule that decides when this trial has diverged.
  DivergenceWatch& watch() const;

  // Shows a warning on this trial's progress line instead of its values.
  void warn(const std::string& text);
  // Prints a line on stderr, above the progress.
  void note(const std::string& text);

 private:
  const Point& read(const std::string& axis) const;  // the point, after it noted that the body reads this axis

  TrialState& run_;
};

// Calls a body on the trial of this state, and records how it ended. Passes on the exceptions UsageError and
// TrialStopped (with the reasons interrupted and enough).
void run_body(TrialState& run, const std::function<void(Trial&)>& body);

// Another name for a trial, used by experiments whose only axis is the seed (experiment.h).
using Run = Trial;

// Former name; will be removed after one version.
using Arm [[deprecated("Trial")]] = Trial;

}  // namespace plumb::lab
