#include "experiments/common/sweep.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/backend.h"
#include "core/thread_share.h"
#include "experiments/common/interrupt.h"
#include "experiments/common/progress.h"
#include "experiments/common/setup.h"

namespace plumb::lab {
namespace {

constexpr double write_every = 5, writing_share = 0.05;  // seconds between two writings of the tables, and their share of the time at most

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Sweep::Sweep(const Study& study, const DataFacts& data, Ledger& ledger, std::vector<std::string> codes)
    : study_(study), data_(data), ledger_(ledger), codes_(std::move(codes)) {
  const RunOptions::Shard shard = study.options_.shard_of_call();
  std::size_t number = 0;
  for (const Point& place : study.places()) {
    if (study.is_searched()) {
      if (shard.has(number++)) units_.push_back({.place = place, .seeds = study.options_.seeds});
    } else {
      for (const std::int64_t seed : study.options_.seeds)
        if (shard.has(number++)) units_.push_back({.place = place, .seeds = {seed}});
    }
  }
  for (Unit& unit : units_) ask(unit);
}

void Sweep::ask(Unit& unit) {
  while (!unit.over && std::ranges::all_of(unit.arms, [](const Named& a) { return a.record.has_value(); })) {
    std::vector<Point> points;
    if (study_.is_searched()) {
      Search search{.place = unit.place, .so_far = {}, .round = unit.round};
      for (const Named& a : unit.arms) search.so_far.push_back(&*a.record);
      points = study_.next_(search);
    } else if (unit.round == 0) {
      points = {Point()};
    }
    ++unit.round;
    unit.over = points.empty();
    for (const Point& point : points)
      for (const std::int64_t seed : unit.seeds) {
        Named arm{.point = study_.point_of(unit.place, point, seed), .key = {}};
        check(std::ranges::find(unit.arms, arm.point, &Named::point) == unit.arms.end(), "[search] expected points that are new, got {} again",
              arm.point.label());
        arm.key = study_.key_of(arm.point, data_);
        for (const std::string& code : codes_)
          if (const LedgerEntry* entry = ledger_.find(arm.key, code); entry && !arm.record)
            if (is_finished(entry->record.status) || (entry->record.status == Status::hopeless && study_.options_.stop_hopeless))
              arm.record = entry->record;
        if (progress_) {
          arm.place = progress_->add({arm.point.label(), study_.cost_of(arm.point)});
          if (arm.record) progress_->skip(arm.place);
        }
        unit.arms.push_back(std::move(arm));
      }
  }
}

std::vector<Record> Sweep::records() const {
  std::vector<Record> records;
  for (const Unit& unit : units_)
    for (const Named& a : unit.arms)
      if (a.record) records.push_back(*a.record);
  return records;
}

std::vector<Point> Sweep::missing() const {
  std::vector<Point> points;
  for (const Unit& unit : units_)
    for (const Named& a : unit.arms)
      if (!a.record) points.push_back(a.point);
  return points;
}

std::vector<Point> Sweep::named() const {
  std::vector<Point> points;
  for (const Unit& unit : units_)
    for (const Named& a : unit.arms) points.push_back(a.point);
  return points;
}

std::size_t Sweep::finished() const {
  const std::vector<Record> all = records();
  return static_cast<std::size_t>(std::ranges::count_if(all, [](const Record& r) { return is_finished(r.status); }));
}

std::size_t Sweep::failed() const {
  const std::vector<Record> all = records();
  return static_cast<std::size_t>(std::ranges::count(all, Status::failed, &Record::status));
}

std::size_t Sweep::elsewhere() const {
  const std::vector<Point> here = named();
  std::vector<std::string> keys;
  for (const LedgerEntry& e : ledger_.entries())
    if (std::ranges::find(codes_, e.code) != codes_.end() && is_finished(e.record.status) && std::ranges::find(here, e.record.point) == here.end() &&
        std::ranges::find(keys, e.key) == keys.end())
      keys.push_back(e.key);
  return keys.size();
}

void Sweep::run(const ArmEnvironment& environment, Progress& progress, const std::function<void()>& changed) {
  progress_ = &progress;
  for (Unit& unit : units_)
    for (Named& a : unit.arms) {
      a.place = progress.add({a.point.label(), study_.cost_of(a.point)});
      if (a.record) progress.skip(a.place);
    }
  const std::int64_t jobs = environment.options.jobs;
  if (jobs == 1) {
    work(environment, 0, changed);
  } else {
    const int threads = std::max(1, num_threads() / static_cast<int>(jobs));
    std::vector<std::thread> workers;
    for (std::int64_t job = 0; job < jobs; ++job) workers.emplace_back([&] { work(environment, threads, changed); });
    for (std::thread& worker : workers) worker.join();
  }
  progress_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

Sweep::Named* Sweep::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_ || interrupted()) return nullptr;
    bool over = true;
    for (Unit& unit : units_) {
      for (Named& a : unit.arms)
        if (!a.begun && !a.record) return a.begun = true, &a;
      over = over && unit.over;
    }
    if (over) return nullptr;
    changed_.wait(lock);  // for a search to name its next arms
  }
}

// `threads` of this worker's own; 0: those of the process.
void Sweep::work(const ArmEnvironment& environment, int threads, const std::function<void()>& changed) {
  std::optional<ThreadShare> share;
  if (threads > 0) share.emplace(threads);
  const DefaultsScope defaults(defaults_for(environment.options));
  const PrecisionScope precision(environment.options.dtype == "bf16" ? Precision::bf16 : Precision::f32);
  while (Named* arm = take()) {
    std::exception_ptr error;
    try {
      ArmRun run(environment, arm->point, arm->key, arm->place);
      progress_->begin(arm->place, run.options.steps);
      run.call(study_.body_);
      const std::lock_guard lock(mutex_);
      finish(*arm, run);
      if (const double start = now(); written_ < 0 || start - written_ >= std::max(write_every, writing_took_ / writing_share)) {
        changed();
        written_ = now();
        writing_took_ = written_ - start;
      }
    } catch (const ArmStopped&) {  // interrupted
      error = nullptr;
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    } catch (...) {
      error = std::current_exception();
    }
    if (error) {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      if (!error_) error_ = error;
    }
    changed_.notify_all();
  }
  changed_.notify_all();
}

void Sweep::finish(Named& arm, ArmRun& run) {
  ledger_.append({.key = run.key, .code = run.env.code, .record = run.record});
  arm.record = run.record;
  std::error_code none;
  if (arm.record->status == Status::ok) std::filesystem::remove(run.checkpoint_file(), none);  // of others it is where replay or --resume begin
  progress_->finish(arm.place, arm.record->status == Status::ok && run.warning.empty(), run.outcome(study_.shown_in_progress(*arm.record)));
  for (Unit& unit : units_)
    if (std::ranges::any_of(unit.arms, [&](const Named& a) { return &a == &arm; })) ask(unit);
}

}  // namespace plumb::lab
