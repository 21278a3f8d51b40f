#include "experiments/common/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "experiments/common/training_step.h"

namespace plumb::lab {
namespace {

constexpr double redraw_seconds = 0.1, log_seconds = 10;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

bool locale_is_utf8() {
  std::string_view locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"})
    if (locale = environment(name); !locale.empty()) break;
  for (const char* encoding : {"UTF-8", "utf-8", "UTF8", "utf8"})
    if (locale.find(encoding) != std::string_view::npos) return true;
  return false;
}

// A terminal that understands escape codes.
bool is_live(int file_descriptor) {
  const std::string_view terminal = environment("TERM");
  return ::isatty(file_descriptor) && !terminal.empty() && terminal != "dumb";
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double steady_seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

bool shows_colour(int file_descriptor) { return is_live(file_descriptor) && environment("NO_COLOR").empty(); }

ProgressOutput ProgressOutput::standard_error(bool no_progress) {
  ProgressOutput output;
  output.mode = no_progress ? Mode::finished : is_live(STDERR_FILENO) ? Mode::bar : Mode::lines;
  output.style = {.utf8 = locale_is_utf8(), .colour = shows_colour(STDERR_FILENO)};
  output.now = steady_seconds;
  output.width = terminal_width;
  return output;
}

Progress::Progress(std::vector<ProgressArm> arms, ProgressOutput output) : arms_(std::move(arms)), output_(std::move(output)) {
  for (const ProgressArm& arm : arms_) {
    total_cost_ += arm.cost;
    label_width_ = std::max(label_width_, display_width(arm.label));
  }
}

Progress::~Progress() { print(erased()); }

void Progress::skip(std::size_t arm) {
  done_cost_ += arms_.at(arm).cost;
  ++begun_;
}

void Progress::begin(std::size_t arm, std::int64_t steps) {
  internal_check(!running_, "run {} begins before the former is finished", arms_.at(arm).label);
  StepProfile::run_begins(arms_.at(arm).label);
  const double now = output_.now();
  if (std::isnan(start_)) start_ = now;
  arm_ = arm;
  arm_start_ = now;
  steps_ = steps;
  step_ = 0;
  loss_.reset();
  lr_ = unknown;
  running_ = true;
  ++begun_;
  if (output_.mode == ProgressOutput::Mode::bar) draw(now);
}

void Progress::step(std::int64_t steps_done, std::optional<double> loss, double lr) {
  step_ = steps_done;
  loss_ = loss;
  lr_ = lr;
  const double now = output_.now();
  if (output_.mode == ProgressOutput::Mode::bar && now - last_drawn_ >= redraw_seconds) draw(now);
  // The first line of a run comes after an interval; short runs say only how they ended.
  if (output_.mode == ProgressOutput::Mode::lines && now - std::max(last_drawn_, arm_start_) >= log_seconds) {
    print(progress_line(state(now)) + "\n");
    last_drawn_ = now;
  }
}

void Progress::finish(bool trained, const std::string& outcome) {
  const double now = output_.now();
  const ProgressArm& arm = arms_[arm_];
  spent_cost_ += steps_ > 0 ? arm.cost * static_cast<double>(step_) / static_cast<double>(steps_) : arm.cost;
  done_cost_ += arm.cost;
  running_ = false;
  const std::string aligned = arm.label + std::string(static_cast<std::size_t>(label_width_ - display_width(arm.label)), ' ');
  const std::string line = finished_line(trained, aligned, outcome, now - arm_start_, output_.style);
  const bool wraps = output_.mode == ProgressOutput::Mode::bar && display_width(line) > output_.width();
  note(wraps ? finished_line(trained, arm.label, outcome, now - arm_start_, output_.style) : line);
}

void Progress::note(const std::string& text) {
  print(erased() + text + "\n");
  if (output_.mode == ProgressOutput::Mode::bar && running_) draw(output_.now());
}

ProgressState Progress::state(double now) const {
  const double part = steps_ > 0 ? static_cast<double>(step_) / static_cast<double>(steps_) : 0;
  const double here = part * arms_[arm_].cost;
  const double spent = spent_cost_ + here;
  ProgressState s;
  s.run = static_cast<std::int64_t>(begun_);
  s.runs = static_cast<std::int64_t>(arms_.size());
  s.label = arms_[arm_].label;
  s.step = step_;
  s.steps = steps_;
  s.loss = loss_;
  s.lr = lr_;
  if (step_ > 0 && now > arm_start_) s.steps_per_second = static_cast<double>(step_) / (now - arm_start_);
  if (spent > 0 && now > start_) s.seconds_left = (now - start_) / spent * (total_cost_ - done_cost_ - here);
  if (total_cost_ > 0) s.fraction = (done_cost_ + here) / total_cost_;
  return s;
}

void Progress::draw(double now) {
  const int width = output_.width();
  // Free at the end: room for the "^C" a terminal echoes, which would wrap.
  const std::string bar = progress_bar(state(now), width - 3, output_.style);
  // A terminal that became narrower has wrapped the former bar.
  const std::string begin = bar_columns_ > width ? erased() : "\r";
  print(begin + bar + "\033[K");
  bar_columns_ = std::max(1, display_width(bar));
  last_drawn_ = now;
}

std::string Progress::erased() {
  if (bar_columns_ == 0) return "";
  const int rows_above = (bar_columns_ - 1) / std::max(1, output_.width());
  bar_columns_ = 0;
  return rows_above > 0 ? fmt::format("\033[{}A\r\033[J", rows_above) : "\r\033[K";
}

void Progress::print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), output_.file);
  std::fflush(output_.file);
}

}  // namespace plumb::lab
