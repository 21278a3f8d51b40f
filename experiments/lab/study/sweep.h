// The trials of a study: which there are, which are finished, and running the others, side by side if asked.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/record/ledger.h"
#include "experiments/lab/record/study_description.h"
#include "experiments/lab/study/plan.h"
#include "experiments/lab/train/trial_state.h"

namespace plumb::lab {

class Progress;

// How many of so many trials run side by side: no more than there are, unless searches name further ones.
int jobs_for(const Plan& plan, std::size_t trials);

class Sweep {
 public:
  // Which of the ledger's trials count: those that nobody would run again, or, for tables alone, all that ended.
  enum class Takes { finished, ended };
  // Names the trials, and takes those of the ledger that one of these codes has computed.
  Sweep(const Plan& plan, const DataFacts& data, Ledger& ledger, std::vector<std::string> codes, Takes takes);

  std::vector<Record> records() const;  // of all that ended, in the order of --dry-run
  std::vector<Point> named() const;
  std::size_t size() const;                // named
  std::size_t count(Status status) const;  // ended so
  std::vector<std::string> codes() const;  // that computed what ended, each once
  std::vector<std::string> machines() const;
  // Trials of the ledger, finished by one of the codes, that are not among those named.
  std::size_t elsewhere() const;

  // What a sweep asks of its study, in any thread; all but the body by one thread at a time.
  struct Calls {
    const std::function<void(Trial&)>& body;
    std::function<std::vector<std::string>(const Record&)>
        shown;                                 // the values that the progress shows of a trial that ended
    std::function<void(const Record&)> ended;  // after each trial; may throw
    std::function<void()> changed;             // now and then, when there are new records
  };
  // Runs what is missing, until all ended or an interrupt came. What a body threw that is not its trial's failure
  // leaves here, when all threads have stopped.
  void run(const TrialEnvironment& environment, Progress& progress, const Calls& calls);

 private:
  struct Named {
    Point point;
    std::string key;
    std::size_t slot = 0;  // in the progress
    bool begun = false;
    std::optional<Record> record = {};
    std::string code = {}, machine = {};  // of the record
  };
  // Trials that are named together: all of a search, or a single one.
  struct Unit {
    Point point;  // on the grid
    std::vector<std::int64_t> seeds;
    std::deque<Named> trials = {};  // a deque keeps references valid
    int round = 0;
    bool over = false;
  };

  template <class F>
  void each(F&& f) const;  // named trial, in the order of --dry-run
  void ask(Unit& unit);    // for what is next, as long as all is there
  Named* take();
  void work(const TrialEnvironment& environment, int threads, const Calls& calls);
  void finish(Named& trial, TrialState& run, const Calls& calls);

  const Plan& plan_;
  const DataFacts& data_;
  Ledger& ledger_;
  std::vector<std::string> codes_;
  Takes takes_;
  bool by_point_ =
      false;  // tables of a ledger whose keys are of other programs than this: its trials are found by where they are
  std::deque<Unit> units_;

  Progress* progress_ = nullptr;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::exception_ptr error_;
  bool stopping_ = false;
  double written_ = -1, writing_took_ = 0;  // seconds
};

}  // namespace plumb::lab
