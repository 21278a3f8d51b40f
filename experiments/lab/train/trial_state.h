// The inside of an Trial: what its study gives it, what it has left behind so far, and what happens between two of its
// steps.
#pragma once

#include <chrono>
#include <deque>
#include <exception>

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

inline constexpr const char* diverged_at = "diverged_at";  // a value of each trial that diverged: the step

// Throws unless it is one that a body may give to a value.
void check_name(const Point& point, const std::string& name);

// What the trials of one call share.
struct TrialEnvironment {
  const StudyOptions& options;
  const ImageData& data;
  const Normalization& normalization;
  std::filesystem::path folder;
  std::string code, machine;
  const OptionsByPoint& by_point;
  Progress* progress;  // null: none
};

// Leaves a body from between two steps.
struct TrialStopped {
  enum class Why { interrupted, hopeless, enough } why;
};

class TrialState {
 public:
  TrialState(const TrialEnvironment& environment, const Point& point, std::string key, std::size_t place);

  const TrialEnvironment& env;
  const StudyOptions options;  // the call's, with what the point says of them
  const std::string key;
  const std::size_t place;  // in the progress
  Record record;
  DivergenceWatch watch;

  // How far the body is to go, and from where, other than by itself.
  std::int64_t stop_before = -1;                                    // leaves the body before this step
  double enough_seconds = std::numeric_limits<double>::infinity();  // leaves the body when its steps have taken so long
  std::int64_t capture_before = -1;                                 // keeps the state before this step
  std::optional<TrialCheckpoint> captured = {};
  const TrialCheckpoint* start_from = nullptr;  // in place of the checkpoint in the folder
  bool leaves_files = true;

  // What is tracked.
  nn::Layer* model = nullptr;
  nn::Optimizer* optimizer = nullptr;
  nn::Ema* ema = nullptr;
  std::function<Values()> evaluate;
  Values evaluation;  // the last one, and after how many steps
  std::int64_t evaluated_after = -1;
  nn::KeyMap names;

  nn::Recipe recipe = {};  // of the network that the body asked for

  std::int64_t step = 0;                 // the one that runs, or the last
  std::optional<double> last_loss = {};  // as the progress shows them
  double last_rate = unknown;
  std::string warning;                                            // Trial::warn
  double fastest_step = std::numeric_limits<double>::infinity();  // seconds
  std::int64_t parameters = 0;                                    // of what is tracked

  // Steps whose numbers may be under way, of which the oldest are taken in until no more than `most_left` are left, and
  // all that have arrived.
  void took(const TakenStep& taken);
  void settle(std::size_t most_left = 0);
  // Takes them all in. Whether one of them has diverged: then nothing that the body does in later steps is reported.
  bool has_ended();
  void trace(std::int64_t of_step, const Values& values);
  void log(const Values& values);    // Trial::log
  void trace(const Values& values);  // Trial::trace
  // Of what is tracked, as it is now: the last evaluation, if no step came since.
  Values latest_evaluation();
  // Ends the trial as diverged if one of these values that tells_divergence() is not finite. The body may still say a
  // better reason, by Trial::mark_diverged() or Trial::check_divergence().
  void end_if_not_finite(const Values& values);
  bool ended_by_value() const { return ended_by_value_; }
  void show(std::int64_t of_step, double loss, double rate);
  void mark_diverged(std::int64_t at_step, const std::string& reason);

  // Between steps.
  std::int64_t first_step();  // of the loop that begins
  void before_step(std::int64_t next);
  void after_step();
  void keep_error(std::exception_ptr error) { error_ = std::move(error); }  // of a place that must not throw

  std::filesystem::path checkpoint_file() const;
  std::filesystem::path weights_file() const;
  void restore();
  bool checkpoint_is_ours() const { return restored_ || checkpoint_written_; }
  // Whether the body is between track() and its loop after a restore: what it logs there it has logged before.
  bool repeats() const { return restored_ && !looped_; }
  bool trained = false;     // Trial::mark_pretrained
  bool calibrated = false;  // Trial::calibrate has set values from data
  void note(const std::string& text) const;
  // So that a file of the model's weights says what it is of; and why it cannot, if so.
  std::pair<std::map<std::string, std::string>, std::string> weights_metadata() const;
  void save_weights();
  // Calls a body, and records how it ended (run_body, trial.h).
  void call(const std::function<void()>& body);
  std::string outcome(
      const std::vector<std::string>& show) const;  // for the progress: "loss 1.2  acc 61 %", "diverged at step 3: ..."

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
  StepValues& at(std::int64_t of_step);  // what the step logged, made if it logged nothing yet
  using Clock = std::chrono::steady_clock;
  Clock::time_point step_began_{}, checkpointed_ = Clock::now();
};

}  // namespace plumb::lab
