// The interface between the laboratory and the problem that the networks of a study solve. The laboratory knows only
// this interface. The folders beside the laboratory define problems, and a program can bring a problem of its own.
//
//   struct Waves : lab::Problem {                        // a regression problem
//     lab::DataFacts facts() const override;             // name, text, hash and chance level of the data
//     std::unique_ptr<lab::Task> task(const lab::TaskSettings&, const nn::Layer& model) const override;
//     lab::Values evaluate(nn::Layer& model) const override;   // {"val_loss", ..} and further measures
//   };
//   study.problem([](const lab::StudyOptions&) { return std::make_unique<Waves>(); });
//
// examples/own_problem.cpp is a complete program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "experiments/lab/options/optimizer_options.h"
#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/record.h"
#include "nn/io/pretrained.h"
#include "nn/module.h"

namespace plumb::lab {

class TrialState;

// The settings of one trial that batches and losses may depend on.
struct TaskSettings {
  std::uint64_t seed;                       // of the trial
  const StudyOptions& study;                // --batch, --steps, ...
  const OptimizationOptions& optimization;  // --lr, ...
  const Point& point;

  // The options of a further group of the study (Study::add); the defaults if the study has no such group.
  template <class Group>
  Group group() const {
    return by_point_ ? by_point_->at<Group>(point) : Group();
  }

  // Settings without further groups, such as those of a test.
  TaskSettings(std::uint64_t of_seed, const StudyOptions& of_study, const OptimizationOptions& of_optimization,
               const Point& of_point)
      : seed(of_seed), study(of_study), optimization(of_optimization), point(of_point) {}

 private:
  friend TrialState;
  const OptionsByPoint* by_point_ = nullptr;
};

// The batches and the loss of one trial.
class Task {
 public:
  virtual ~Task() = default;
  // Returns a function that computes the loss of the batch of step `step`. Call the function within the random scope of
  // the step. The function keeps its batch, so that the step can be repeated after later steps have begun. The steps
  // come in order and may start at any number.
  virtual std::function<Tensor()> loss_of(std::int64_t step) = 0;
  // The mean entropy of the targets of the batch of the last loss_of(), in the unit of the loss: the lowest loss that
  // any network can have on this batch. Trials record its mean as "target_entropy", and judge losses above it
  // (clean_loss in record/chance.h). The default 0 suits targets that a network can match.
  virtual double target_entropy() const { return 0; }
};

// Returns the task whose loss of a step is loss(step). `loss` must compute the same value each time for a step, within
// the random scope of the step.
std::unique_ptr<Task> task_of(std::function<Tensor(std::int64_t step)> loss);

// A problem that networks learn to solve: data, loss and measures. All trials of a call share one problem, and may use
// it on several threads at the same time.
class Problem {
 public:
  virtual ~Problem() = default;

  // The facts for run.json and reports. `hash` must change with everything in the data that can change a result.
  // `measures` describes the training loss and the values of evaluate(). The chance level of "train_loss", the loss of
  // the best constant guess, decides which networks trained, and when a training has diverged.
  virtual DataFacts facts() const = 0;
  // Adds the results of a baseline, such as a linear model, to the facts. The function may train the baseline: a call
  // that trains networks calls it once, before run.json is written. The default adds nothing.
  virtual void add_baseline(DataFacts& /*facts*/) const {}
  // Makes the batches and the loss of a trial that trains `model`. Batches must depend only on the problem, the
  // settings and the step. `settings` and `model` outlive the task.
  virtual std::unique_ptr<Task> task(const TaskSettings& settings, const nn::Layer& model) const = 0;
  // Measures a model, which is in evaluation mode, without a graph. The values contain "val_loss". Every name must be
  // in facts().measures.
  virtual Values evaluate(nn::Layer& model) const = 0;
  // Sets initial values of gates that depend on data: calls nn::calibrate(model, x) with inputs x of the problem. The
  // default does nothing, so that the methods act_norm and admin_profile start as pre and admin.
  virtual void calibrate(nn::Layer& /*model*/, const TaskSettings& /*settings*/) const {}
  // Returns the metadata of a file with the weights of `model`, from which a program can make the network and its
  // inputs again. Throws Error if no metadata can describe the model. The default is the metadata of model_card(),
  // without facts about the data.
  virtual std::map<std::string, std::string> weights_metadata(const nn::Module& model) const;
};

// Returns the card of a model that nn::card_of() can describe. Throws Error for any other model.
nn::ModelCard model_card(const nn::Module& model);

// Makes the problem of a call from the options of the call.
using ProblemFactory = std::function<std::unique_ptr<Problem>(const StudyOptions&)>;

}  // namespace plumb::lab
