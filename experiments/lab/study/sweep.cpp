#include "experiments/lab/study/sweep.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <system_error>
#include <thread>

#include "core/backend.h"
#include "core/thread_share.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/run/setup.h"

namespace plumb::lab {
namespace {

constexpr double write_every = 5, writing_share = 0.05;  // seconds between two writings of the tables, and their share of the time at most

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Sweep::Sweep(const Study& study, const DataFacts& data, Ledger& ledger, std::vector<std::string> codes, Takes takes)
    : study_(study), data_(data), ledger_(ledger), codes_(std::move(codes)), takes_(takes) {
  by_point_ = takes == Takes::ended &&
              std::ranges::none_of(ledger.entries(), [&](const LedgerEntry& e) { return e.key == study.key_of(e.record.point, data); });
  const StudyOptions::Shard shard = study.options_.shard_of_call();
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
  while (!unit.over && std::ranges::all_of(unit.trials, [](const Named& a) { return a.record.has_value(); })) {
    std::vector<Point> points;
    if (study_.is_searched()) {
      Search search{.place = unit.place, .so_far = {}, .round = unit.round};
      for (const Named& a : unit.trials) {
        if (takes_ == Takes::finished && a.record->status == Status::failed) {
          unit.over = true;  // no way to go on from, until --resume has tried it again
          return;
        }
        search.so_far.push_back(&*a.record);
      }
      points = study_.next_points(search);
    } else if (unit.round == 0) {
      points = {Point()};
    }
    ++unit.round;
    unit.over = points.empty();
    for (const Point& point : points) {
      const bool one = point.find("seed");
      for (const std::int64_t seed : one ? std::vector{point.get<std::int64_t>("seed")} : unit.seeds) {
        Named trial{.point = study_.point_of(unit.place, point.without("seed"), seed), .key = {}};
        check(std::ranges::find(unit.trials, trial.point, &Named::point) == unit.trials.end(), "[search] expected points that are new, got {} again",
              trial.point.label());
        trial.key = study_.key_of(trial.point, data_);
        for (const std::string& code : codes_) {
          const LedgerEntry* entry = trial.record ? nullptr : ledger_.find(trial.key, code);
          if (!entry && !trial.record && by_point_) entry = ledger_.find(trial.point, code);
          if (!entry) continue;
          const Status status = entry->record.status;
          if (takes_ == Takes::finished && !is_finished(status) && !(status == Status::hopeless && study_.options_.stop_hopeless)) continue;
          trial.record = entry->record;
          trial.code = code, trial.machine = entry->machine;
        }
        if (progress_) {
          trial.place = progress_->add({trial.point.label(), study_.cost_of(trial.point)});
          if (trial.record) progress_->skip(trial.place);
        }
        unit.trials.push_back(std::move(trial));
      }
    }
  }
}

template <class F>
void Sweep::each(F&& f) const {
  for (const Unit& unit : units_)
    for (const Named& a : unit.trials) f(a);
}

std::vector<Record> Sweep::records() const {
  std::vector<Record> records;
  each([&](const Named& a) {
    if (a.record) records.push_back(*a.record);
  });
  return records;
}

std::vector<Point> Sweep::named() const {
  std::vector<Point> points;
  each([&](const Named& a) { points.push_back(a.point); });
  return points;
}

std::size_t Sweep::size() const {
  std::size_t all = 0;
  each([&](const Named&) { ++all; });
  return all;
}

std::size_t Sweep::count(Status status) const {
  std::size_t some = 0;
  each([&](const Named& a) { some += a.record && a.record->status == status; });
  return some;
}

std::vector<std::string> Sweep::codes() const {
  std::set<std::string> all;
  each([&](const Named& a) {
    if (a.record) all.insert(a.code);
  });
  return {all.begin(), all.end()};
}

std::vector<std::string> Sweep::machines() const {
  std::set<std::string> all;
  each([&](const Named& a) {
    if (a.record) all.insert(a.machine);
  });
  return {all.begin(), all.end()};
}

std::size_t Sweep::elsewhere() const {
  std::set<std::string> here, others;
  each([&](const Named& a) { here.insert(a.point.label()); });
  for (const LedgerEntry& e : ledger_.entries())
    if (std::ranges::find(codes_, e.code) != codes_.end() && is_finished(e.record.status) && !here.contains(e.record.point.label()))
      others.insert(e.key);
  return others.size();
}

void Sweep::run(const TrialEnvironment& environment, Progress& progress, const std::function<void()>& changed) {
  progress_ = &progress;
  for (Unit& unit : units_)
    for (Named& a : unit.trials) {
      a.place = progress.add({a.point.label(), study_.cost_of(a.point)});
      if (a.record) progress.skip(a.place);
    }
  // Each job at least one thread, the first some more where they do not come out even.
  std::size_t missing = 0;
  each([&](const Named& a) { missing += !a.record; });
  const int jobs = jobs_for(missing);
  if (jobs == 1) {
    work(environment, 0, changed);
  } else {
    const int threads = num_threads();
    std::vector<std::thread> workers;
    try {
      for (int job = 0; job < jobs; ++job)
        workers.emplace_back([&, share = std::max(1, threads / jobs + (job < threads % jobs ? 1 : 0))] { work(environment, share, changed); });
    } catch (const std::system_error&) {  // the system gives no more threads: those that there are do it
      if (workers.empty()) work(environment, 0, changed);
    }
    for (std::thread& worker : workers) worker.join();
  }
  progress_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

int Sweep::jobs_for(std::size_t trials) const {
  const auto jobs = static_cast<int>(study_.options_.jobs);
  return study_.is_searched() ? jobs : std::clamp(static_cast<int>(trials), 1, jobs);
}

Sweep::Named* Sweep::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (stopping_ || interrupted()) return nullptr;
    bool over = true;
    for (Unit& unit : units_) {
      for (Named& a : unit.trials)
        if (!a.begun && !a.record) return a.begun = true, &a;
      over = over && unit.over;
    }
    if (over) return nullptr;
    changed_.wait(lock);  // for a search to name its next trials
  }
}

// `threads` of this worker's own; 0: those of the process.
void Sweep::work(const TrialEnvironment& environment, int threads, const std::function<void()>& changed) {
  try {
    std::optional<ThreadShare> share;
    if (threads > 0) share.emplace(threads);
    const DefaultsScope defaults(defaults_for(environment.options));
    const PrecisionScope precision(precision_of(environment.options.dtype));
    while (Named* trial = take()) {
      TrialState run(environment, trial->point, trial->key, trial->place);
      progress_->begin(trial->place, run.options.steps);
      run_body(run, study_.body_);
      const std::lock_guard lock(mutex_);
      finish(*trial, run);
      if (const double start = now(); written_ < 0 || start - written_ >= std::max(write_every, writing_took_ / writing_share)) {
        try {
          changed();
        } catch (const std::exception& e) {  // the ledger is what counts, and at the end they are written again
          progress_->note(fmt::format("tables not written: {}", e.what()));
        }
        written_ = now();
        writing_took_ = written_ - start;
      }
      changed_.notify_all();
    }
  } catch (const TrialStopped&) {  // interrupted
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (!error_) error_ = std::current_exception();
  }
  changed_.notify_all();
}

void Sweep::finish(Named& trial, TrialState& run) {
  ledger_.append({.key = run.key, .code = run.env.code, .machine = run.env.machine, .record = run.record});
  trial.record = ledger_.entries().back().record;
  trial.code = run.env.code, trial.machine = run.env.machine;
  std::error_code none;
  if (run.record.status == Status::ok && run.checkpoint_is_ours()) std::filesystem::remove(run.checkpoint_file(), none);
  progress_->finish(trial.place, run.record.status == Status::ok && run.warning.empty(), run.outcome(study_.shown_in_progress(run.record)));
  study_.check_measures(run.record);
  for (Unit& unit : units_)
    if (std::ranges::any_of(unit.trials, [&](const Named& a) { return &a == &trial; })) return ask(unit);
}

}  // namespace plumb::lab
