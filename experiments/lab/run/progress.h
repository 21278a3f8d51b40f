// How a sweep of training runs shows itself on stderr: a live bar on a terminal, a plain line now and then elsewhere.
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

// One moment of a sweep.
struct ProgressState {
  std::int64_t run = 1, runs = 1;  // counted from 1
  std::string label;               // "layerscale depth 48 seed 0"
  std::int64_t step = 0, steps = 0;
  std::optional<double> loss = {};  // absent: left out
  double lr = unknown;              // an unknown value is left out
  double steps_per_second = unknown;
  double seconds_left = unknown;  // of the whole sweep
  double fraction = 0;            // of the whole sweep
};

struct ProgressStyle {
  bool utf8 = true;
  bool colour = false;
};

// The bar as one line of at most `width` columns; the less important fields go first where it is narrow.
std::string progress_bar(const ProgressState& state, int width, ProgressStyle style);
// Columns on a terminal, where every character is one column wide; colours count nothing.
int display_width(const std::string& text);
// A moment of a sweep as a line of a log: all fields, no bar.
std::string progress_line(const ProgressState& state);
// "✓ layerscale depth 48 seed 0  loss 1.234  24 s", "✗ ..." where it did not train.
std::string finished_line(bool trained, const std::string& label, const std::string& outcome, double seconds,
                          ProgressStyle style);
// "24 s", "4:12", "1:02:33"
std::string duration(double seconds);

// Whether the file (STDOUT_FILENO, ..) is a terminal that shows escape codes and NO_COLOR is not set.
bool shows_colour(int file_descriptor);

// Where progress goes. Tests replace the clock and the width.
struct ProgressOutput {
  enum class Mode { bar, lines, finished };  // finished: only the line of each finished run

  std::FILE* file = stderr;
  Mode mode = Mode::lines;
  ProgressStyle style;
  std::function<double()> now;  // seconds
  std::function<int()> width;   // columns, asked for at each drawing

  // Stderr as it is: a bar on a terminal that can show one, UTF-8 as the locale says, colour unless NO_COLOR is set.
  static ProgressOutput standard_error(bool no_progress);
};

struct ProgressArm {
  std::string label;
  double cost;  // in any unit, such as depth x steps; the time left is divided by it
};

// Of all runs of a sweep, of which several may go on at once, each in a thread of its own.
class Progress {
 public:
  explicit Progress(std::vector<ProgressArm> trials, ProgressOutput output);
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  std::size_t add(ProgressArm trial);  // one more; returns its place
  void skip(std::size_t trial);        // complete from an earlier call: takes no time
  void begin(std::size_t trial, std::int64_t steps);
  void goes_on(std::size_t trial,
               std::int64_t first);  // from a checkpoint: steps before this one took none of this call's time
  void step(std::size_t trial, std::int64_t steps_done, std::optional<double> loss,
            double lr);  // cheap: draws at most 10 times a second
  // Leaves a permanent line; the outcome is what it says after the label: "loss 1.234  acc 61.2 %", "diverged at step
  // 12".
  void finish(std::size_t trial, bool trained, const std::string& outcome);
  // A line of its own, above the bar.
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
    }  // in this call
  };
  Running& running(std::size_t trial);
  ProgressState state(double now) const;  // of the run that has been going on for longest
  void draw(double now);
  std::string erased();  // what removes the bar from the screen
  void print(const std::string& text);
  void print_above(const std::string& text);

  std::mutex mutex_;
  std::vector<ProgressArm> trials_;
  std::vector<Running> running_;
  ProgressOutput output_;
  double total_cost_ = 0, done_cost_ = 0;  // done: finished or skipped
  double spent_cost_ = 0;                  // that took the time since start_
  double start_ = unknown, last_drawn_ = -std::numeric_limits<double>::infinity();
  std::size_t begun_ = 0;
  int label_width_ = 0;
  int bar_columns_ = 0;  // of the bar on the screen
};

}  // namespace plumb::lab
