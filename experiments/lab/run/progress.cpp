#include "experiments/lab/run/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "experiments/lab/run/step_profile.h"

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

// Whether the file descriptor is a terminal that understands escape codes.
bool is_live(int file_descriptor) {
  const std::string_view terminal = environment("TERM");
  return ::isatty(file_descriptor) && !terminal.empty() && terminal != "dumb";
}

int terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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

Progress::Progress(std::vector<ProgressArm> trials, ProgressOutput output) : output_(std::move(output)) {
  for (ProgressArm& trial : trials) add(std::move(trial));
}

Progress::~Progress() { print(erased()); }

std::size_t Progress::add(ProgressArm trial) {
  const std::lock_guard lock(mutex_);
  total_cost_ += trial.cost;
  label_width_ = std::max(label_width_, display_width(trial.label));
  trials_.push_back(std::move(trial));
  return trials_.size() - 1;
}

void Progress::skip(std::size_t trial) {
  const std::lock_guard lock(mutex_);
  done_cost_ += trials_.at(trial).cost;
  ++begun_;
}

Progress::Running& Progress::running(std::size_t trial) {
  const auto found = std::ranges::find(running_, trial, &Running::trial);
  internal_check(found != running_.end(), "progress of trial {}, which has not begun", trials_.at(trial).label);
  return *found;
}

void Progress::begin(std::size_t trial, std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  internal_check(std::ranges::find(running_, trial, &Running::trial) == running_.end(), "trial {} begins twice",
                 trials_.at(trial).label);
  StepProfile::run_begins(trials_.at(trial).label);
  const double now = output_.now();
  if (std::isnan(start_)) start_ = now;
  running_.push_back({.trial = trial, .start = now, .first = 0, .step = 0, .steps = steps});
  ++begun_;
  if (output_.mode == ProgressOutput::Mode::bar) draw(now);
}

void Progress::goes_on(std::size_t trial, std::int64_t first) {
  const std::lock_guard lock(mutex_);
  running(trial).first = running(trial).step = first;
}

void Progress::step(std::size_t trial, std::int64_t steps_done, std::optional<double> loss, double lr) {
  const std::lock_guard lock(mutex_);
  Running& run = running(trial);
  run.step = steps_done;
  run.loss = loss;
  run.lr = lr;
  const double now = output_.now();
  if (output_.mode == ProgressOutput::Mode::bar && now - last_drawn_ >= redraw_seconds) draw(now);
  // The first line of a trial appears after log_seconds, so a short trial prints only its final line.
  if (output_.mode == ProgressOutput::Mode::lines &&
      now - std::max(last_drawn_, running_.front().start) >= log_seconds) {
    print(progress_line(state(now)) + "\n");
    last_drawn_ = now;
  }
}

void Progress::finish(std::size_t trial, bool trained, const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  const double now = output_.now();
  const Running run = running(trial);
  const ProgressArm& about = trials_[trial];
  spent_cost_ += run.steps > 0 ? about.cost * run.taken() : about.cost;
  done_cost_ += about.cost;
  std::erase_if(running_, [&](const Running& r) { return r.trial == trial; });
  const std::string aligned =
      about.label + std::string(static_cast<std::size_t>(label_width_ - display_width(about.label)), ' ');
  const std::string line = finished_line(trained, aligned, outcome, now - run.start, output_.style);
  const bool wraps = output_.mode == ProgressOutput::Mode::bar && display_width(line) > output_.width();
  print_above(wraps ? finished_line(trained, about.label, outcome, now - run.start, output_.style) : line);
}

void Progress::note(const std::string& text) {
  const std::lock_guard lock(mutex_);
  print_above(text);
}

void Progress::print_above(const std::string& text) {
  print(erased() + text + "\n");
  if (output_.mode == ProgressOutput::Mode::bar && !running_.empty()) draw(output_.now());
}

ProgressState Progress::state(double now) const {
  const Running& run = running_.front();
  double here = 0, spent = spent_cost_;
  for (const Running& r : running_) {
    here += r.part() * trials_[r.trial].cost;
    spent += r.taken() * trials_[r.trial].cost;
  }
  ProgressState s;
  s.run = static_cast<std::int64_t>(begun_);
  s.runs = static_cast<std::int64_t>(trials_.size());
  s.label = trials_[run.trial].label;
  if (running_.size() > 1) s.label += fmt::format(" (+{})", running_.size() - 1);
  s.step = run.step;
  s.steps = run.steps;
  s.loss = run.loss;
  s.lr = run.lr;
  if (run.step > run.first && now > run.start)
    s.steps_per_second = static_cast<double>(run.step - run.first) / (now - run.start);
  if (spent > 0 && now > start_) s.seconds_left = (now - start_) / spent * (total_cost_ - done_cost_ - here);
  if (total_cost_ > 0) s.fraction = (done_cost_ + here) / total_cost_;
  return s;
}

void Progress::draw(double now) {
  const int width = output_.width();
  // Three columns stay free, because a terminal echoes "^C", and "^C" would wrap a full line.
  const std::string bar = progress_bar(state(now), width - 3, output_.style);
  // If the terminal has become narrower, the previous bar fills several rows.
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
