// One trial of a study while its body runs: where it is among the axes, its data, and what keeps a training of many
// steps whole: batches, log, evaluation, divergence, checkpoints.
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

// Of a ViT: what the body decides. All else is the command line's, or that of an axis of that name.
struct ViTChoice {
  std::optional<std::int64_t> depth = {};   // the axis "depth"
  std::optional<nn::GateChoice> gate = {};  // the axis "gate"
};

// What a body may do in the steps of Trial::train: called before each step, and what it returns, if anything, after the
// update, with that step's gradients.
using AroundStep = std::function<std::function<void(const Gradients& gradients)>(std::int64_t step)>;

class Trial {
 public:
  explicit Trial(TrialState& run) : run_(run) {}  // by the study

  // Its value on an axis of the study.
  template <class T>
  T operator[](const Axis<T>& axis) const {
    return point().template get<T>(axis.name());
  }
  const Point& point() const;

  const StudyOptions& options() const;
  std::uint64_t seed() const;
  std::int64_t steps() const { return options().steps; }
  std::int64_t warmup() const;  // steps: --warmup, or those of the recipe of the ViT that vit() described, or none
  const ImageData& data() const;
  const Normalization& normalization() const;
  const std::filesystem::path& folder() const;  // where the run's files are
  std::filesystem::path weights_file() const;   // in it: where --save-weights puts this trial's weights

  // A ViT by the options of the command line (their defaults where the program has none), for the images of the data
  // set, with this trial's seed: the network that tables are of, for loops of one's own as well.
  nn::ViTOptions vit(const ViTChoice& choice = {});
  // Trains it by the options of the command line, minimising the cross-entropy: optimizer, schedule, clipping, moving
  // average; measures train_loss (mean over the last 20 steps), val_loss, val_accuracy and images_per_second; traces
  // loss, lr_now and grad_norm in about 200 points. The model ends with the weights that were evaluated. Throws if the
  // model does not start as its modules declare for this trial's seed (nn::audit_init); models that the body has
  // calibrated or marked as pretrained are not checked.
  void train(nn::Layer& model, const AroundStep& around = {});

  // The --steps training batches of this trial, or the numbers of its steps.
  Batches batches(const Augmentation& augment = {});
  Steps each_step();
  // Runs what a method asks of the first training batch before the first step (nn::calibrate).
  void calibrate(nn::Layer& model);
  // The model has trained weights: nothing is set from data, here or in train(), and train() does not check how it
  // starts.
  void mark_pretrained();
  [[deprecated("mark_pretrained")]] void is_trained() { mark_pretrained(); }
  // The record of a trial says what was trained: the network of track(), or else the ViT that vit() described.
  // Tells what a loop of one's own trains, before its first step: checkpoints, --resume within the trial, replay,
  // --eval-every and --save-weights then hold for it. They live until the body ends; with an average, that is what is
  // evaluated and saved. If this trial has a checkpoint, its state is put back into them, and the loop goes on from
  // there: whatever else the body keeps from step to step is not. One loop then, by batches() or each_step().
  void track(nn::Layer& model, nn::Optimizer& optimizer, nn::Ema* ema = nullptr);
  // The evaluation of what is tracked, as it is now: val_loss and val_accuracy unless track_evaluation() says
  // otherwise.
  Values evaluate();
  // How to evaluate what is tracked, for models that do not map images to logits; and under what names its weights are
  // saved.
  void track_evaluation(std::function<Values()> evaluate);
  void save_under(nn::KeyMap names);

  // Adds these values to the step's line of metrics.jsonl; "loss" and "lr" also show in the progress. log() also makes
  // the last value under a name a result of the trial. A loss or a norm of gradients (tells_divergence(), divergence.h)
  // that is not finite ends the trial as diverged, here and in measure(): the loop over the steps ends, and later
  // values are left out.
  void log(const Values& values);
  void trace(const Values& values);
  // The progress alone.
  void show(double loss, double rate);
  // A result of the trial, without a step: a column of results.csv.
  void measure(const Values& values);
  // What was traced under a name: step and value.
  std::vector<std::pair<std::int64_t, double>> traced(const std::string& name) const;
  // A JSON object for the files of the study's own (Study::file).
  void attach(const std::string& json);

  // To be asked in each step, before its update: whether the training has diverged (divergence.h). If so, the trial is
  // marked, and its body returns. `loss` computes the step's loss again.
  bool check_divergence(const Gradients& step, const std::function<Tensor()>& loss);
  // The same of a step whose update was made with Optimizer::step_while_finite, and its loss in progress and log: as
  // soon as its numbers have arrived, and at the latest two steps later or before anything else is logged, evaluated or
  // written. Once it has diverged, the loop over the steps ends, and what the body logs, traces, attaches or measures
  // of later steps is left out.
  void took(const TakenStep& step);
  [[deprecated("check_divergence")]] bool diverges(const Gradients& step, const std::function<Tensor()>& loss) {
    return check_divergence(step, loss);
  }
  bool has_diverged() const;
  // Marks the trial as diverged at that step, counted from 0, by a rule of the body's own, after which the body
  // returns: a result, "diverged_at". What the trial measured is kept in the files and left out of the statistics over
  // seeds.
  void mark_diverged(std::int64_t step, const std::string& reason);
  [[deprecated("mark_diverged")]] void diverged(std::int64_t step, const std::string& reason) {
    mark_diverged(step, reason);
  }
  double recent_loss()
      const;  // mean over the last 20 steps that check_divergence() was asked about, or that took() was told of
  DivergenceWatch& watch() const;

  // What the trial's line in the progress says in place of its values, as something that is not well.
  void warn(const std::string& text);
  // A line on stderr, above the progress.
  void note(const std::string& text);

 private:
  TrialState& run_;
};

// Calls a body on the trial of this state, and records how it ended. Lets UsageError and TrialStopped{interrupted,
// enough} through.
void run_body(TrialState& run, const std::function<void(Trial&)>& body);

// The one name for a trial of an experiment whose only axis is the seed (experiment.h).
using Run = Trial;

// The name of before, for one version.
using Arm [[deprecated("Trial")]] = Trial;

}  // namespace plumb::lab
