// The sweep of a study: its named trials, their results in the ledger, and the jobs that run the missing ones.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/options/budget.h"
#include "experiments/lab/record/data_facts.h"
#include "experiments/lab/record/ledger.h"
#include "experiments/lab/study/plan.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

class Progress;

// The number of jobs for n trials to run: min(n, --jobs), but at least 1. If searches may name further trials, the
// number is --jobs.
int jobs_for(const Plan& plan, std::size_t trials);

// The trials of a study, with the results of the ended trials.
class Sweep {
 public:
  // Determines which trials of the ledger count. `finished`: only finished trials, which need not run again. `ended`:
  // all ended trials, for tables.
  enum class Takes { finished, ended };
  // The points of further trials, and a line about them for the user. No points: there are no further trials.
  struct Round {
    std::vector<Point> points = {};
    std::string note = {};
  };
  // Returns further trials, from the records and from the points of all named trials. When all named trials have ended,
  // the sweep names these trials, and a round without points ends the sweep.
  using NextRound = std::function<Round(const Sweep&)>;
  // Names the trials. Takes the result of a trial from the ledger if one of `codes` has computed it.
  Sweep(const Plan& plan, const DataFacts& data, Ledger& ledger, std::vector<std::string> codes, Takes takes,
        NextRound next_round = {});

  // The records of all ended trials and the points of all named trials, in the order of --dry-run. Both include the
  // trials of searches for learning rates and at neighbouring rates.
  std::vector<Record> records() const;
  std::vector<Point> named() const;
  std::vector<Point> cells() const;        // values on the axes that are not searched: those of this shard
  std::size_t size() const;                // number of named trials
  std::size_t ended() const;               // number of trials that ended
  std::size_t count(Status status) const;  // number of trials that ended with this status
  // Number of finished trials whose weights --save-weights could not write. --resume --save-weights of the same code
  // writes them.
  std::size_t without_weights() const;
  std::vector<std::string> codes() const;     // hashes of the codes that computed the ended trials, each once
  std::vector<std::string> machines() const;  // machines that computed the ended trials, each once
  // The number of further trials in the ledger: one of the codes has finished them, but this sweep does not name them.
  // Only judged trials count.
  std::size_t elsewhere() const;
  // The line of the last round for the user.
  const std::string& note() const { return note_; }

  // Functions of the study. The body is called in several threads at once, the other functions by one thread at a time.
  struct Calls {
    const std::function<void(Trial&)>& body;
    // Returns the names of the values that the progress line of an ended trial shows.
    std::function<std::vector<std::string>(const Record&)> shown;
    std::function<void(const Record&)> ended;  // called after each trial; may throw
    std::function<void()> changed;             // called from time to time after new records
  };
  // Runs the missing trials, and writes the weights that an earlier call could not write (--save-weights), until all
  // have ended, the budget of the options is spent, or an interrupt arrives. A function may throw an error that is not
  // the failure of a trial. run() throws such an error again when all threads have stopped.
  void run(const TrialEnvironment& environment, Progress& progress, const Calls& calls);

 private:
  struct Named {
    Point point;
    std::string key;
    std::size_t slot = 0;  // index of the trial in the progress
    bool begun = false;
    bool is_missing = true;  // run() runs the trial: no record, or its weights could not be written
    std::optional<Record> record = {};
    // The hash of the code that computed the record, and the name of the machine.
    std::string code = {}, machine = {};
    bool has_lost_weights() const { return record && record->status == Status::ok && record->weights_saved == false; }
  };
  // Trials that are named together: all trials of a search or of a combination with its own learning rate, or one trial
  // of another study.
  struct Unit {
    Point point;  // values on the axes that are not searched
    std::vector<std::int64_t> seeds;
    std::deque<Named> trials = {};  // a deque keeps references to trials valid
    int round = 0;
    bool over = false;
  };

  template <class F>
  void each(F&& f) const;  // calls f for each named trial, in the order of --dry-run
  void ask(Unit& unit);    // names the next trials of the unit if all earlier ones have ended
  // Names the trials of further rounds while all named trials have ended. Before they have, keeps the records of such
  // trials that the ledger has, so that the files and verdicts of an interrupted call have them.
  void ask_round();
  // Makes a trial of a unit, with its record if the ledger has one. `searched` are its values on searched axes.
  Named looked_up(const Unit& unit, const Point& searched, std::int64_t seed) const;
  void name(Unit& unit, Named trial);
  void enter(Named& trial);  // adds the trial to the progress
  Named* take();
  void work(const TrialEnvironment& environment, int threads, const Calls& calls);
  void finish(Named& trial, TrialState& run, const Calls& calls);
  void write_weights(Named& trial, TrialState& run, const Calls& calls);
  void note_unread_axes(const TrialState& run);  // says once for each axis that a trial did not read its value

  const Plan& plan_;
  const DataFacts& data_;
  Ledger& ledger_;
  std::vector<std::string> codes_;
  Takes takes_;
  // Whether trials are looked up in the ledger by point instead of key. True with Takes::ended, if no entry of the
  // ledger has the key that this program computes for its point.
  bool by_point_ = false;
  NextRound next_round_;
  bool over_ = false;              // no further trials will be named
  std::string note_ = {};          // of the last round
  std::vector<Record> kept_ = {};  // records of trials of further rounds, before these rounds
  std::deque<Unit> units_;

  Progress* progress_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  std::set<std::string> noted_;  // the axes, and the notes on searches, that the user was told about
  bool stopping_ = false;
  Budget budget_ = {};
  std::int64_t begun_ = 0;  // number of trials that this call has begun
  double started_ = 0;      // the time of run(), in seconds
  // The time of the last update of the files and the duration of that update, both in seconds.
  double written_ = -1, writing_took_ = 0;
};

}  // namespace plumb::lab
