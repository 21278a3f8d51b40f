// Each method at its own learning rate. A study that compares methods trains each combination of values on its axes (a
// cell) at a rate of its own, which a search chooses. The trials of the search have half of the steps, and their seed
// does not judge. The other seeds train at the chosen rate.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

struct StudyDescription;  // record/study_description.h

// The learning rates that a search has tried, each with its loss: the value of the criterion, negated if higher values
// are better. The loss is infinite if the trial diverged, was stopped as hopeless or has no finite value.
using TriedRates = std::map<double, double>;

// The rates that a search from the rate `start` tries next; empty when the search is over. The search begins with
// `start`, its half and its double. While the best rate is the lowest or the highest, the search goes on by an octave
// in this direction, up to 5 octaves from `start`. It ends with the rates half an octave below and above the best.
// Rates have three significant digits. The result depends on the arguments only, so a resumed search takes the same
// path.
std::vector<double> next_rates(double start, const TriedRates& tried);
// The choice among the rates that a search has tried: a finite loss is better than none, then the lowest loss, then the
// lowest rate. A rate is at the edge if the loss at the next higher tried rate is infinite, or nearer to the highest
// finite loss than to the lowest: at such a rate, longer trainings and other seeds often fail. If the best rate is at
// the edge, the best of the lower rates is chosen that are not, and whose losses are nearer to the lowest loss than to
// the highest; without such a rate, the best rate stays. `tried` must not be empty.
RateChoice choice_among(const TriedRates& tried, const Point& cell, const RateCriterion& by = {});

// Whether a trial belongs to a search for a learning rate. Such trials are not judged.
bool is_of_search(const Point& trial);

// Declares --at-lr and --rates-from if the study trains by Trial::train, has no search of its own and judges methods.
void declare_rates(StudyDeclaration& study);
// Decides how learning rates are chosen (StudyDeclaration::rates), when all options are read. A study with at least two
// cells and four seeds searches; with --at-lr, or fewer cells or seeds, all trials train at the same rates. A call that
// resumes or shows a study folder goes on by the rule of the folder. Throws UsageError if options contradict each other
// or the folder, or if the file of --rates-from lacks a cell.
void settle_rates(StudyDeclaration& study);

// The next trials of a cell, as points with "lr", "seed" and, in a search, `search_steps`. If the losses of the first
// trials of a search are equal, the body does not read its rate: the search ends, and the other seeds train at its
// first rate. Throws Error if no trial of the search has measured the criterion.
std::vector<Point> next_trials(const StudyDeclaration& study, const Search& search);
// A line for the user when a search has named its next trials: the body does not read its rate, so the search ends
// after its first trials; or all losses so far are near chance. Empty otherwise.
std::string note_on_rates(const StudyDeclaration& study, const Search& search, const Chance& chance);
// The trials that follow those of next_trials() in an average search, for --dry-run: three more trials of the search
// and the judged trials of each cell, at the first rate of the search. Empty if the study has no search.
std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& cells);
// A sentence for --dry-run about the trials of the search and the judged trials. Empty if the study has no search.
std::string plan_of_search(const StudyDeclaration& study, const std::vector<Point>& cells);

// The rates that are chosen so far, in the order of `trials`, which are all ended trials.
std::vector<RateChoice> chosen_rates(const StudyDeclaration& study, const std::vector<Record>& trials);
// Whether the body does not read the rate of this trial (RateChoice::unread).
bool has_unread_rate(const std::vector<RateChoice>& rates, const Point& trial);
// The table of these rates, with a caption that says how they were chosen.
Section section_of_rates(const StudyDeclaration& study, const std::vector<RateChoice>& rates);
// How a study with this run.json chooses learning rates, in words. Studies with different rules cannot be merged.
std::string rule_for_rates(const StudyDescription& run);

}  // namespace plumb::lab
