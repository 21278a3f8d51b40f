// A page of results: a text with answers from kept ledgers.
#pragma once

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "experiments/lab/record/study_description.h"
#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// The study of a kept ledger: its arms, and the verdicts on its claims.
struct KeptStudy {
  // The trials of a method at a depth.
  struct Arm {
    std::string method;  // the axes that differ between trials, without depth, as in Point::label()
    std::int64_t depth = 0;
    std::vector<TrialResult> judged = {};  // at the chosen rate, the last in the ledger
    // The tried rates that train: at which most judged trials trained, or any other trial where none was judged. Rates
    // above one at which most judged trials failed do not count.
    std::set<double> rates = {};
    double step = INFINITY;  // the time of a step of the fastest trial, in seconds
  };
  // A claim, or the comparison of a method with the control, at one place.
  struct Decision {
    std::string text, verdict;  // the verdict is "", unless the trials decide
    std::string seeds = {}, train_loss = {}, val_loss = {}, val_accuracy = {};
  };
  std::string name, page;  // page: the link to the page of the study
  std::vector<Arm> arms = {};
  std::vector<Decision> decisions = {};
  bool is_old = false;  // whether the trials are older than the rule of judging

  // Reads the ledger, and the verdicts that its study wrote into `folder`.
  KeptStudy(const std::filesystem::path& ledger, const StudyDescription& run, const std::filesystem::path& folder,
            std::string page_link);
};

// Returns the text with answers in place of these words. LEDGER is the name of a kept ledger, and METHOD and DEPTH name
// an arm:
//   {best LEDGER DEPTH}                the three methods with the fewest failed seeds, by mean accuracy
//   {WORD LEDGER METHOD DEPTH}         a measure such as val_accuracy (mean and 95 % interval over the seeds that
//                                      trained), failed (seeds), or rates (the lowest and highest that train)
//   {decided} {studies}                a table of the decided claims, and a line for each study
//   {methods LEDGER DEPTH NOTE; ...}   a table of methods by the depths of these ledgers; NOTE is added to the names.
//                                      With `time LEDGER`, also the time of a step, as a multiple of that of pre, in
//                                      the fastest trials of this ledger, and at the depth where it is the least
// Throws Error for words of another form, and for a ledger, an arm or a measure that does not exist.
std::string with_answers(const std::string& text, const std::vector<KeptStudy>& studies);

}  // namespace plumb::lab
