// The rounds of --until-decided. When the planned trials have ended, each round trains the next seed of the arms of all
// comparisons that are still open, until none is. The rule of bets (stats/bets.h) permits to stop after any seed.
//
// A round is a function of the finished rounds only. The comparisons are the claims of the study, or without claims
// those of each method with the control.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// The largest number of judged seeds of an arm.
inline constexpr std::int64_t horizon = 48;

// The state of a comparison.
enum class Progression {
  open,
  decided,          // by order or by equality
  needs_more,       // the predicted seeds of both verdicts exceed the horizon, or it is reached
  rate_of_winner,   // the other side is better at one of its neighbouring rates, and was so three seeds before
  cannot_be_judged  // for a reason that no seed changes
};
constexpr auto names_of(Progression) {
  return std::array{"open", "decided", "needs more than 48 seeds", "undecided: the rate of the better side",
                    "cannot be judged"};
}

// A comparison, at one place of the other axes.
struct Pursued {
  std::string name;
  Point first = {};                                         // a combination of the axes
  std::optional<Point> second = {};                         // no value for a constant
  std::optional<double> rate_first = {}, rate_second = {};  // their learning rates, if trials of a cell differ in them
  std::int64_t seeds = 0;                                   // that both sides have
  // The predicted numbers of seeds until a verdict of order and of equality, and the evidence of the nearer one with
  // the evidence that it needs.
  double order = 0, equality = 0;
  double evidence = 1, needs = 1;
  Progression state = Progression::open;
  double least() const { return order <= equality ? order : equality; }
};

// The comparisons of judged results. `results` are those of judge_all(), and `claims` the claims of the study.
std::vector<Pursued> pursued(const StudyResults& results, const std::vector<Claim>& claims);
// The trials of the next round: the next seed of each arm of an open comparison, at its rate and at those neighbouring
// rates that have trials. Empty if no comparison is open, or if an arm lacks a trial that ended in an error.
std::vector<Point> next_seeds(const StudyDeclaration& study, const StudyResults& results,
                              const std::vector<Pursued>& comparisons);
// The most trials that a study may have, for --dry-run: all seeds of each combination, with own rates at the chosen
// rate and at four neighbours. The rates are placeholders. Empty without --until-decided.
std::vector<Point> trials_at_most(const StudyDeclaration& study);
// A line about the comparisons that are open: their number, and the evidence and the predicted seeds of the nearest.
std::string progress_of(const std::vector<Pursued>& comparisons);
// The comparisons as a section of reports.
Section section_of(const std::vector<Pursued>& comparisons);

}  // namespace plumb::lab
