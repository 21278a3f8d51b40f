// The state of a trial: the inputs from the study, the results so far, and the work between two steps.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/problem/problem.h"
#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/train/divergence.h"
#include "experiments/lab/train/loss_levels.h"
#include "experiments/lab/train/observer.h"
#include "experiments/lab/train/step_scope.h"
#include "nn/io/weights.h"
#include "nn/optim/ema.h"

namespace plumb::lab {

class Progress;
class Trial;

inline constexpr const char* diverged_at = "diverged_at";  // name of the value that stores the step of a divergence

// Throws Error if a body may not use `name` as the name of a value.
void check_name(const Point& point, const std::string& name);

// The data that all trials of one call share.
struct TrialEnvironment {
  const StudyOptions& options;
  const Problem& problem;
  double chance;  // of the training loss
  std::filesystem::path folder;
  std::string code, machine;
  const OptionsByPoint& by_point;
  Progress* progress;                    // null: progress is not shown
  std::vector<double> loss_levels = {};  // the levels of Study::steps_to()
  // Makes the observer of a loop that trains `model`; empty if the study observes no loop (Study::measure_layers).
  std::function<Observer(Trial& trial, nn::Layer& model)> observe = {};
};

// An exception that ends the body of a trial between two steps.
struct TrialStopped {
  enum class Why { interrupted, hopeless, enough } why;
};

// Limits and starting point of the loop of a body, for --replay, --dry-run and trials whose weights are missing.
struct TrialLimits {
  std::int64_t stop_before = -1;                                    // the body ends before this step
  double enough_seconds = std::numeric_limits<double>::infinity();  // the body ends after this time
  std::int64_t capture_before = -1;                                 // the state before this step is kept in `captured`
  std::optional<TrialCheckpoint> captured = {};
  const TrialCheckpoint* start_from = nullptr;  // replaces the checkpoint in the folder
  bool leaves_files = true;                     // whether checkpoints and weights are written
  // The record of the trial, if the trial has finished and only its weights file is missing. The body ends when the
  // weights are written. If the checkpoint has the state at the end of the trial, the body takes no step.
  const Record* finished = nullptr;
};

// The arguments of Trial::track() and save_under(), and the last evaluation.
struct TrackedModel {
  nn::Layer* model = nullptr;
  nn::Optimizer* optimizer = nullptr;
  nn::Ema* ema = nullptr;
  std::int64_t parameters = 0;  // number of parameters of the model
  Values evaluation = {};       // the last evaluation, made after `evaluated_after` steps
  std::int64_t evaluated_after = -1;
  nn::KeyMap names = {};
};

// The state of one trial while its body runs.
class TrialState {
 public:
  TrialState(const TrialEnvironment& environment, const Point& point, std::string key, std::size_t place);

  const TrialEnvironment& env;
  // The options of the call; axes have the values of the point.
  const StudyOptions options;
  const OptimizationOptions optimization;
  const std::string key;    // identifies the settings and data of the trial
  const std::size_t place;  // index of the trial in the progress
  Record record;
  TaskSettings task_settings;
  DivergenceWatch watch;
  LossLevels levels;

  TrialLimits limits = {};
  TrackedModel tracked = {};
  double warmup_share = 0;                     // set by Trial::default_warmup()
  std::set<std::string> axes_read = {"seed"};  // the axes whose values the body has read
  // The axes whose values the body has not read and that set no option. The body does the same at all their values.
  std::vector<std::string> unread_axes() const;

  std::int64_t step = 0;                 // the current step, or the last step
  std::optional<double> last_loss = {};  // the loss that the progress shows
  double last_rate = unknown;
  std::string warning;                                            // set by Trial::warn()
  double fastest_step = std::numeric_limits<double>::infinity();  // time of the fastest step in seconds

  // Gives the numbers of a step to `watch` and `levels`. Returns whether the training has diverged.
  bool observe(std::int64_t of_step, double loss, double gradient_norm, double target_entropy);
  // took() queues a step whose numbers may not have arrived from the device. settle() processes all steps whose numbers
  // have arrived. If more than `most_left` steps are left in the queue, settle() waits for the oldest steps.
  void took(const TakenStep& taken);
  void settle(std::size_t most_left = 0);
  // Processes all queued steps, and returns whether one of the steps has diverged. If the result is true, later values
  // of the body are ignored.
  bool has_ended();
  // Records values of a step, and shows the step in the progress.
  void trace(std::int64_t of_step, const Values& values);
  void log(const Values& values);    // implements Trial::log()
  void trace(const Values& values);  // implements Trial::trace()
  // Evaluates the tracked model in its current state. If no step was taken since the last evaluation, returns the last
  // evaluation.
  Values latest_evaluation();
  // Ends the trial as diverged if one of the values is not finite and tells_divergence() is true for the name of the
  // value. The body may later give a better reason, by Trial::mark_diverged() or Trial::check_divergence().
  void end_if_not_finite(const Values& values);
  // Whether end_if_not_finite() has ended the trial and the body has given no better reason since.
  bool ended_by_value() const { return ended_by_value_; }
  // Shows loss and learning rate of a step in the progress.
  void show(std::int64_t of_step, double loss, double rate);
  // Marks the trial as diverged and deletes the weights file of the trial. Throws Error if the trial is already marked.
  void mark_diverged(std::int64_t at_step, const std::string& reason);

  // The loop over the steps calls these functions. first_step() returns the first step of the loop. before_step()
  // throws TrialStopped if the trial must stop. after_step() measures the time, evaluates the model and writes files.
  std::int64_t first_step();
  void before_step(std::int64_t next);
  void after_step();
  void keep_error(std::exception_ptr error) { error_ = std::move(error); }  // for a destructor, which must not throw

  // The files of the trial in the study folder.
  std::filesystem::path checkpoint_file() const;
  std::filesystem::path weights_file() const;
  // If the trial has a checkpoint that fits, loads its state into the tracked model, optimizer and average.
  void restore();
  // Whether this call has read or written the checkpoint file.
  bool checkpoint_is_ours() const { return restored_ || checkpoint_written_; }
  // Whether the trial was restored and the loop of the body has not started. Values that the body logs in this time are
  // already in the checkpoint.
  bool repeats() const { return restored_ && !looped_; }
  bool trained = false;                      // set by Trial::mark_pretrained()
  bool calibrated = false;                   // Trial::calibrate() has set values from data
  void note(const std::string& text) const;  // implements Trial::note()
  // The metadata of the weights file: the model card. If the model can have no model card, the second string says why.
  std::pair<std::map<std::string, std::string>, std::string> weights_metadata() const;
  // If --save-weights is given, writes the weights file. If the file cannot be written, writes a checkpoint instead.
  void save_weights();
  // Calls a body, and records how the trial ended (see run_body.h).
  void call(const std::function<void()>& body);
  // The outcome of the trial for the progress, with the values named in `show`: "loss 1.2  val accuracy 61.0 %",
  // "diverged at step 3: ...".
  std::string outcome(const std::vector<std::string>& show) const;

 private:
  TrialCheckpoint state() const;
  void save_checkpoint();
  void write_state();  // writes the checkpoint file
  std::optional<TrialCheckpoint> read_checkpoint_of_folder() const;
  void set_aside(const std::string& mark) const;
  bool looped_ = false, restored_ = false, checkpoint_written_ = false;
  std::exception_ptr error_;
  static constexpr std::size_t most_pending = 2;
  std::deque<TakenStep> pending_;
  bool ended_ = false, ended_by_value_ = false;
  StepValues& at(std::int64_t of_step);  // the entry of a step in record.metrics; adds an empty entry for a new step
  using Clock = std::chrono::steady_clock;
  Clock::time_point step_began_{}, checkpointed_ = Clock::now();
};

}  // namespace plumb::lab
