#include "experiments/lab/study/sweep.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <system_error>
#include <thread>

#include "core/backend.h"
#include "core/thread_share.h"
#include "experiments/lab/options/device.h"
#include "experiments/lab/options/shard.h"
#include "experiments/lab/run/interrupt.h"
#include "experiments/lab/run/progress.h"
#include "experiments/lab/run/setup.h"
#include "experiments/lab/train/run_body.h"

namespace plumb::lab {
namespace {

// The least number of seconds between two updates of the files, and the largest share of the time that updates may
// take.
constexpr double write_every = 5, writing_share = 0.05;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

Sweep::Sweep(const Plan& plan, const DataFacts& data, Ledger& ledger, std::vector<std::string> codes, Takes takes,
             NextRound next_round)
    : plan_(plan),
      data_(data),
      ledger_(ledger),
      codes_(std::move(codes)),
      takes_(takes),
      next_round_(std::move(next_round)) {
  by_point_ = takes == Takes::ended && std::ranges::none_of(ledger.entries(), [&](const LedgerEntry& e) {
                return e.key == plan.key_of(e.record.point, data);
              });
  const Shard shard = shard_named(plan.options().shard);
  std::size_t number = 0;
  for (const Point& point : plan.grid()) {
    if (plan.is_searched()) {
      if (shard.has(number++)) units_.push_back({.point = point, .seeds = plan.options().seeds});
    } else {
      for (const std::int64_t seed : plan.options().seeds)
        if (shard.has(number++)) units_.push_back({.point = point, .seeds = {seed}});
    }
  }
  for (Unit& unit : units_) ask(unit);
  ask_round();
}

void Sweep::ask(Unit& unit) {
  while (!unit.over && std::ranges::all_of(unit.trials, [](const Named& a) { return a.record.has_value(); })) {
    std::vector<Point> points;
    if (plan_.is_searched()) {
      Search search{.point = unit.point, .so_far = {}, .round = unit.round};
      for (const Named& a : unit.trials) {
        if (takes_ == Takes::finished && a.record->status == Status::failed) {
          unit.over = true;  // the search cannot continue until --resume has run the failed trial again
          return;
        }
        search.so_far.push_back(&*a.record);
      }
      points = plan_.next_points(search);
      if (const std::string note = progress_ ? plan_.note_on(search, data_) : ""; !note.empty())
        if (noted_.insert(note).second) progress_->note(note);
    } else if (unit.round == 0) {
      points = {Point()};
    }
    ++unit.round;
    unit.over = points.empty();
    for (const Point& point : points) {
      const bool one = point.find("seed");
      for (const std::int64_t seed : one ? std::vector{point.get<std::int64_t>("seed")} : unit.seeds)
        name(unit, looked_up(unit, point.without("seed"), seed));
    }
  }
}

Sweep::Named Sweep::looked_up(const Unit& unit, const Point& searched, std::int64_t seed) const {
  Named trial{.point = plan_.point_of(unit.point, searched, seed), .key = {}};
  trial.key = plan_.key_of(trial.point, data_);
  for (const std::string& code : codes_) {
    const LedgerEntry* entry = trial.record ? nullptr : ledger_.find(trial.key, code);
    if (!entry && !trial.record && by_point_) entry = ledger_.find(trial.point, code);
    if (!entry) continue;
    const Status status = entry->record.status;
    if (takes_ == Takes::finished && !is_finished(status) &&
        !(status == Status::hopeless && plan_.options().stop_hopeless))
      continue;
    trial.record = entry->record;
    trial.code = code, trial.machine = entry->machine;
  }
  trial.is_missing =
      !trial.record || (takes_ == Takes::finished && plan_.options().save_weights && trial.has_lost_weights() &&
                        trial.code == codes_.front());  // other code would make other weights
  return trial;
}

void Sweep::name(Unit& unit, Named trial) {
  check(std::ranges::find(unit.trials, trial.point, &Named::point) == unit.trials.end(),
        "[search] expected new points, got {} again", trial.point.label());
  if (progress_) enter(trial);
  unit.trials.push_back(std::move(trial));
}

void Sweep::ask_round() {
  const auto further = [this](const Point& point) {
    // The last unit, so that further seeds follow the planned ones.
    const auto unit =
        std::find_if(units_.rbegin(), units_.rend(), [&](const Unit& u) { return point.contains(u.point); });
    internal_check(unit != units_.rend(), "a further round names {}, which is in no search", point.label());
    Point searched = point.without("seed");
    for (const auto& [axis, value] : unit->point.entries()) searched = searched.without(axis);
    return std::pair(&*unit, looked_up(*unit, searched, point.get<std::int64_t>("seed")));
  };
  kept_.clear();
  while (!over_ && ended() == size()) {
    const Round round = next_round_ ? next_round_(*this) : Round();
    over_ = round.points.empty();
    note_ = round.note;
    if (progress_ && !note_.empty()) progress_->note(note_);
    for (const Point& point : round.points) {
      auto [unit, trial] = further(point);
      name(*unit, std::move(trial));
    }
  }
  for (bool more = !over_ && next_round_; more;) {
    more = false;
    for (const Point& point : next_round_(*this).points) {
      const Named trial = further(point).second;
      if (!trial.record || std::ranges::find(kept_, trial.point, &Record::point) != kept_.end()) continue;
      kept_.push_back(*trial.record);
      more = true;
    }
  }
}

void Sweep::enter(Named& trial) {
  trial.slot = progress_->add({trial.point.label(), plan_.cost_of(trial.point)});
  if (!trial.is_missing) progress_->skip(trial.slot);
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
  records.insert(records.end(), kept_.begin(), kept_.end());
  return records;
}

std::size_t Sweep::ended() const {
  std::size_t all = 0;
  each([&](const Named& a) { all += a.record.has_value(); });
  return all;
}

std::vector<Point> Sweep::named() const {
  std::vector<Point> points;
  each([&](const Named& a) { points.push_back(a.point); });
  return points;
}

std::vector<Point> Sweep::cells() const {
  std::vector<Point> points;
  for (const Unit& unit : units_)
    if (points.empty() || !(points.back() == unit.point)) points.push_back(unit.point);
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

std::size_t Sweep::without_weights() const {
  std::size_t some = 0;
  each([&](const Named& a) { some += a.has_lost_weights(); });
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
    if (std::ranges::find(codes_, e.code) != codes_.end() && is_finished(e.record.status) &&
        is_judged(e.record.point) && !here.contains(e.record.point.label()))
      others.insert(e.key);
  return others.size();
}

void Sweep::run(const TrialEnvironment& environment, Progress& progress, const Calls& calls) {
  progress_ = &progress;
  if (!note_.empty()) progress.note(note_);
  budget_ = budget_from(plan_.options().budget);
  started_ = now();
  for (Unit& unit : units_)
    for (Named& a : unit.trials) enter(a);
  // Each job has at least one thread. If the threads do not divide evenly, the first jobs have one thread more.
  std::size_t missing = 0;
  each([&](const Named& a) { missing += a.is_missing; });
  const int jobs = jobs_for(plan_, missing);
  if (jobs == 1) {
    work(environment, 0, calls);
  } else {
    const int threads = num_threads();
    std::vector<std::thread> workers;
    try {
      for (int job = 0; job < jobs; ++job)
        workers.emplace_back([&, share = std::max(1, threads / jobs + (job < threads % jobs ? 1 : 0))] {
          work(environment, share, calls);
        });
    } catch (const std::system_error&) {  // no more threads are available: continue with the threads that started
      if (workers.empty()) work(environment, 0, calls);
    }
    for (std::thread& worker : workers) worker.join();
  }
  progress_ = nullptr;
  if (error_) std::rethrow_exception(error_);
}

int jobs_for(const Plan& plan, std::size_t trials) {
  const auto jobs = static_cast<int>(plan.options().jobs);
  return plan.is_searched() || plan.options().until_decided ? jobs : std::clamp(static_cast<int>(trials), 1, jobs);
}

Sweep::Named* Sweep::take() {
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool too_late = begun_ > 0 && now() - started_ >= budget_.seconds;  // each call trains at least one trial
    if (stopping_ || interrupted() || begun_ >= budget_.trials || too_late) return nullptr;
    for (Unit& unit : units_)
      for (Named& a : unit.trials)
        if (!a.begun && a.is_missing) return a.begun = true, begun_ += !a.record, &a;
    if (over_) return nullptr;
    changed_.wait(lock);  // wait until further trials are named
  }
}

// Runs trials until none is left. `threads` is the number of threads of this worker; 0 means the threads of the
// process.
void Sweep::work(const TrialEnvironment& environment, int threads, const Calls& calls) {
  try {
    std::optional<ThreadShare> share;
    if (threads > 0) share.emplace(threads);
    const DefaultsScope defaults(defaults_for(environment.options));
    const PrecisionScope precision(precision_of(environment.options.dtype));
    while (Named* trial = take()) {
      TrialState run(environment, trial->point, trial->key, trial->slot);
      progress_->begin(trial->slot, run.options.steps);
      if (trial->record) {
        write_weights(*trial, run, calls);
        continue;
      }
      run_body(run, calls.body);
      const std::lock_guard lock(mutex_);
      finish(*trial, run, calls);
      note_unread_axes(run);
      if (const double start = now();
          written_ < 0 || start - written_ >= std::max(write_every, writing_took_ / writing_share)) {
        try {
          calls.changed();
          // Not fatal: the ledger has all results, and the files are written again at the end.
        } catch (const std::exception& e) {
          progress_->note(fmt::format("tables not written: {}", e.what()));
        }
        written_ = now();
        writing_took_ = written_ - start;
      }
      changed_.notify_all();
    }
  } catch (const TrialStopped&) {  // thrown after an interrupt
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    if (!error_) error_ = std::current_exception();
  }
  changed_.notify_all();
}

void Sweep::note_unread_axes(const TrialState& run) {
  if (run.record.status != Status::ok) return;
  for (const std::string& axis : run.unread_axes())
    if (noted_.insert(axis).second)
      progress_->note(
          fmt::format("trial {1} did not read its value on the axis {0}; if no trial reads {0}, all values of {0} "
                      "give the same result (read it in the body: trial[axis])",
                      axis, run.record.point.label()));
}

// Runs the body of a finished trial until its weights are written. All other parts of the record stay as they are.
void Sweep::write_weights(Named& trial, TrialState& run, const Calls& calls) {
  run.limits.finished = &*trial.record;
  try {
    run_body(run, calls.body);
  } catch (const TrialStopped& stopped) {
    if (stopped.why != TrialStopped::Why::enough) throw;
  }
  const bool saved = run.record.weights_saved == true;
  const std::lock_guard lock(mutex_);
  if (saved) {
    Record record = *trial.record;
    record.weights_saved = true;
    ledger_.append({.key = trial.key, .code = trial.code, .machine = trial.machine, .record = std::move(record)});
    trial.record = ledger_.entries().back().record;
    std::error_code none;
    if (run.checkpoint_is_ours()) std::filesystem::remove(run.checkpoint_file(), none);
  }
  if (!saved && !run.record.reason.empty())
    progress_->note(fmt::format("{}: {}", trial.point.label(), run.record.reason));
  progress_->finish(trial.slot, saved, saved ? "weights saved" : "weights not saved");
}

void Sweep::finish(Named& trial, TrialState& run, const Calls& calls) {
  ledger_.append({.key = run.key, .code = run.env.code, .machine = run.env.machine, .record = run.record});
  trial.record = ledger_.entries().back().record;
  trial.code = run.env.code, trial.machine = run.env.machine;
  std::error_code none;
  if (run.record.status == Status::ok && run.record.weights_saved != false && run.checkpoint_is_ours())
    std::filesystem::remove(run.checkpoint_file(), none);
  progress_->finish(trial.slot, run.record.status == Status::ok && run.warning.empty(),
                    run.outcome(calls.shown(run.record)));
  calls.ended(run.record);
  for (Unit& unit : units_)
    if (std::ranges::any_of(unit.trials, [&](const Named& a) { return &a == &trial; })) ask(unit);
  if (ended() == size()) ask_round();
}

}  // namespace plumb::lab
