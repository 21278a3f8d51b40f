// Shows the progress of a sweep on stderr. On a terminal, progress is a live bar; otherwise, progress is a plain line
// about every 10 seconds.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/record.h"

namespace plumb::lab {

// The state of a sweep at one moment.
struct ProgressState {
  std::int64_t run = 1, runs = 1;  // run: the running trial (counted from 1); runs: the number of trials
  std::string label;               // label of the trial: "layerscale depth 48 seed 0"
  std::int64_t step = 0, steps = 0;
  std::optional<double> loss = {};  // not shown without a value
  double lr = unknown;              // not shown if unknown
  double steps_per_second = unknown;
  double seconds_left = unknown;  // until the end of the sweep
  double fraction = 0;            // completed part of the sweep
};

// The characters and colours that a terminal can show.
struct ProgressStyle {
  bool utf8 = true;
  bool colour = false;
};

// The progress bar as one line of at most `width` columns. If the line would be too long, the least important fields
// are left out first.
std::string progress_bar(const ProgressState& state, int width, ProgressStyle style);
// The number of terminal columns of a text. Each character counts as one column, and colour codes do not count.
int display_width(const std::string& text);
// The state of a sweep as one line of a log, with all fields and without a bar.
std::string progress_line(const ProgressState& state);
// The line of a finished trial: "✓ layerscale depth 48 seed 0  loss 1.234  24 s". The line begins with "✗" if `trained`
// is false.
std::string finished_line(bool trained, const std::string& label, const std::string& outcome, double seconds,
                          ProgressStyle style);
// A duration as text: "24 s", "4:12", "1:02:33".
std::string duration(double seconds);

// Whether the file descriptor (such as STDOUT_FILENO) is a terminal that understands escape codes, and NO_COLOR is not
// set.
bool shows_colour(int file_descriptor);

// The form in which progress is shown. Tests replace the clock and the width.
struct ProgressOutput {
  enum class Mode { bar, lines, finished };  // finished: prints only the lines of finished trials

  std::FILE* file = stderr;
  Mode mode = Mode::lines;
  ProgressStyle style;
  std::function<double()> now;  // the clock, in seconds
  std::function<int()> width;   // width of the terminal in columns, read at each redraw

  // The form for stderr: a bar if stderr is a terminal that can show a bar, UTF-8 if the locale uses UTF-8, and colour
  // unless NO_COLOR is set. If `no_progress` is true, only finished trials are shown.
  static ProgressOutput standard_error(bool no_progress);
};

// One trial of a sweep, for the class Progress.
struct ProgressArm {
  std::string label;
  double cost;  // in any unit, such as depth x steps; used to estimate the time left
};

// The progress of all trials of a sweep. Several trials may run at the same time, each in its own thread.
class Progress {
 public:
  explicit Progress(std::vector<ProgressArm> trials, ProgressOutput output);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Adds a trial and returns the index of the trial.
  std::size_t add(ProgressArm trial);
  // Counts a trial that an earlier call has completed. The trial takes no time in this call.
  void skip(std::size_t trial);
  // Starts a trial of `steps` training steps.
  void begin(std::size_t trial, std::int64_t steps);
  // Continues the trial from a checkpoint at step `first`. Steps before `first` do not count for the speed and the time
  // left.
  void goes_on(std::size_t trial, std::int64_t first);
  // Reports the state after a step. The function is cheap, because it redraws at most 10 times a second.
  void step(std::size_t trial, std::int64_t steps_done, std::optional<double> loss, double lr);
  // Prints the permanent line of a finished trial. `outcome` is the text after the label, such as "loss 1.234  val
  // accuracy 61.2 %" or "diverged at step 12".
  void finish(std::size_t trial, bool trained, const std::string& outcome);
  // Prints a line of text above the bar.
  void note(const std::string& text);

 private:
  struct Running {
    std::size_t trial;
    double start;
    std::int64_t first, step, steps;
    std::optional<double> loss = {};
    double lr = unknown;

    double part() const { return steps > 0 ? static_cast<double>(step) / static_cast<double>(steps) : 0; }
    double taken() const {
      return steps > 0 ? static_cast<double>(step - first) / static_cast<double>(steps) : 0;
    }  // the part taken in this call
  };
  Running& running(std::size_t trial);
  ProgressState state(double now) const;  // the state of the trial that has been running longest
  void draw(double now);
  std::string erased();  // escape codes that remove the bar from the screen
  void print(const std::string& text);
  void print_above(const std::string& text);

  std::mutex mutex_;
  std::vector<ProgressArm> trials_;
  std::vector<Running> running_;
  ProgressOutput output_;
  double total_cost_ = 0, done_cost_ = 0;  // done_cost_: cost of finished and skipped trials
  double spent_cost_ = 0;                  // cost of the steps taken since start_
  double start_ = unknown, last_drawn_ = -std::numeric_limits<double>::infinity();
  std::size_t begun_ = 0;
  int label_width_ = 0;
  int bar_columns_ = 0;  // width of the bar on the screen
};

}  // namespace plumb::lab
