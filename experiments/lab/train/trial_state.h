// The state of a Trial: its inputs from the study, its results so far, and the work between two steps.
#pragma once

#include <chrono>
#include <deque>
#include <exception>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/data/loader.h"
#include "experiments/lab/options/options_by_point.h"
#include "experiments/lab/options/study_options.h"
#include "experiments/lab/record/checkpoint.h"
#include "experiments/lab/train/divergence.h"
#include "experiments/lab/train/training_step.h"
#include "nn/io/weights.h"
#include "nn/models/vit.h"
#include "nn/optim/ema.h"

namespace plumb::lab {

class Progress;

inline constexpr const char* diverged_at = "diverged_at";  // value of a diverged trial: the step

// Throws Error if a body may not use this name for a value.
void check_name(const Point& point, const std::string& name);

// The data that all trials of one call share.
struct TrialEnvironment {
  const StudyOptions& options;
  const ImageData& data;
  const Normalization& normalization;
  std::filesystem::path folder;
  std::string code, machine;
  const OptionsByPoint& by_point;
  Progress* progress;  // null: no progress
};

// Thrown between two steps to leave a body.
struct TrialStopped {
  enum class Why { interrupted, hopeless, enough } why;
};

// The state of one trial while its body runs.
class TrialState {
 public:
  TrialState(const TrialEnvironment& environment, const Point& point, std::string key, std::size_t place);

  const TrialEnvironment& env;
  const StudyOptions options;  // the options of the call, with the values of the point
  const std::string key;       // identifies settings and data of the trial
  const std::size_t place;     // index in the progress
  Record record;
  DivergenceWatch watch;

  // Limits of the body's loop, and its starting point (used by --replay and --dry-run).
  std::int64_t stop_before = -1;                                    // leaves the body before this step
  double enough_seconds = std::numeric_limits<double>::infinity();  // leaves the body after this time
  std::int64_t capture_before = -1;                                 // keeps the state before this step
  std::optional<TrialCheckpoint> captured = {};
  const TrialCheckpoint* start_from = nullptr;  // used instead of the checkpoint in the folder
  bool leaves_files = true;                     // whether checkpoints and weights are written

  // The arguments of Trial::track() and of the functions that depend on it.
  nn::Layer* model = nullptr;
  nn::Optimizer* optimizer = nullptr;
  nn::Ema* ema = nullptr;
  std::function<Values()> evaluate;
  Values evaluation;  // the last evaluation; the next line has its number of steps
  std::int64_t evaluated_after = -1;
  nn::KeyMap names;

  nn::Recipe recipe = {};                      // of the network that the body asked for
  std::set<std::string> axes_read = {"seed"};  // the axes whose values the body has read
  // The axes of the trial that no option of the trial has, and whose values the body has not read: the body does the
  // same at all their values.
  std::vector<std::string> unread_axes() const;

  std::int64_t step = 0;                 // the current step, or the last
  std::optional<double> last_loss = {};  // the last loss and learning rate that the progress shows
  double last_rate = unknown;
  std::string warning;                                            // Trial::warn
  double fastest_step = std::numeric_limits<double>::infinity();  // seconds
  std::int64_t parameters = 0;                                    // of the tracked model

  // took() queues a step whose numbers may still be on their way from the device. settle() processes all steps whose
  // numbers have arrived, and waits for the oldest ones until at most `most_left` steps are queued.
  void took(const TakenStep& taken);
  void settle(std::size_t most_left = 0);
  // Processes all queued steps and returns whether one has diverged. After that, values that the body reports are
  // ignored.
  bool has_ended();
  // Records values of a step, and shows the step in the progress.
  void trace(std::int64_t of_step, const Values& values);
  void log(const Values& values);    // Trial::log
  void trace(const Values& values);  // Trial::trace
  // The evaluation of the tracked model in its current state. Returns the last evaluation if no step followed it.
  Values latest_evaluation();
  // Ends the trial as diverged if one of these values is not finite and tells_divergence() is true for its name. The
  // body may still give a better reason, by Trial::mark_diverged() or Trial::check_divergence().
  void end_if_not_finite(const Values& values);
  // Whether end_if_not_finite() has ended the trial, and no better reason was given since.
  bool ended_by_value() const { return ended_by_value_; }
  // Shows loss and learning rate of a step in the progress.
  void show(std::int64_t of_step, double loss, double rate);
  // Marks the trial as diverged and deletes its weights file. Throws Error if it is marked already.
  void mark_diverged(std::int64_t at_step, const std::string& reason);

  // Called by the loop over the steps. first_step() is the step with which the loop begins. before_step() throws
  // TrialStopped if the trial must stop. after_step() takes the time, evaluates and saves.
  std::int64_t first_step();
  void before_step(std::int64_t next);
  void after_step();
  void keep_error(std::exception_ptr error) { error_ = std::move(error); }  // from a destructor, which must not throw

  // The trial's files in the run folder.
  std::filesystem::path checkpoint_file() const;
  std::filesystem::path weights_file() const;
  // Loads the trial's checkpoint, if it fits, into the tracked model, optimizer and average.
  void restore();
  // Whether the checkpoint file was read or written by this call.
  bool checkpoint_is_ours() const { return restored_ || checkpoint_written_; }
  // Whether the body is between track() and its loop after a restore. The checkpoint already holds the values that the
  // body logs there.
  bool repeats() const { return restored_ && !looped_; }
  bool trained = false;                      // Trial::mark_pretrained
  bool calibrated = false;                   // Trial::calibrate has set values from data
  void note(const std::string& text) const;  // Trial::note
  // The metadata of the model's weights file: a model card. If there can be no card, the second string says why.
  std::pair<std::map<std::string, std::string>, std::string> weights_metadata() const;
  // Writes the weights file, if --save-weights is given.
  void save_weights();
  // Calls a body and records how it ended (see run_body() in trial.h).
  void call(const std::function<void()>& body);
  // The outcome for the progress, with the values named in `show`: "loss 1.2  acc 61 %", "diverged at step 3: ...".
  std::string outcome(const std::vector<std::string>& show) const;

 private:
  TrialCheckpoint state() const;
  void save_checkpoint();
  std::optional<TrialCheckpoint> read_checkpoint_of_folder() const;
  void set_aside(const std::string& mark) const;
  bool looped_ = false, restored_ = false, checkpoint_written_ = false;
  std::exception_ptr error_;
  static constexpr std::size_t most_pending = 2;
  std::deque<TakenStep> pending_;
  bool ended_ = false, ended_by_value_ = false;
  StepValues& at(std::int64_t of_step);  // the values that the step logged; adds an empty entry if there is none
  using Clock = std::chrono::steady_clock;
  Clock::time_point step_began_{}, checkpointed_ = Clock::now();
};

}  // namespace plumb::lab
