// The search for the learning rate of each combination of the axes, as a search on the axis "lr" (NextPoints), and the
// trials at neighbouring rates. A trial of the search has half of the steps and the whole warm-up, and its seed does
// not judge; the other seeds train at the chosen rate. own_rates.h decides whether a study searches.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// The learning rates that a search has tried, each with its loss: the value of the criterion, negated if higher values
// are better. The loss is infinite if the trial diverged, was stopped as hopeless or has no finite value.
using TriedRates = std::map<double, double>;

// The rates that a search from the rate `start` tries next; empty when the search is over. The search begins with
// `start`, its half and its double. While the best rate is the lowest or the highest, the search goes on by an octave
// in this direction, up to 5 octaves from `start`. It ends with the rates half an octave below and above the best.
// Rates have three significant digits. The result depends on the arguments only, so a resumed search takes the same
// path.
std::vector<double> next_rates(double start, const TriedRates& tried);
// The choice among the rates that a search has tried. The best rate has the lowest loss; a finite loss is better than
// none, and of equal losses the lowest rate counts. The choice is the vertex of a parabola in the logarithm of the
// rate, by least squares through the finite points within 1.3 octaves of the best, clamped to these points, with three
// digits. It is the best rate if there are fewer than three points, if the parabola is not convex, or if `parabola` is
// false.
//
// A rate is at the edge if the loss at the next higher tried rate is infinite, or nearer to the highest finite loss
// than to the lowest: at such a rate, longer trainings and other seeds often fail. If the best rate is at the edge, the
// best of the lower rates is chosen that are not, and whose losses are nearer to the lowest loss than to the highest;
// without such a rate, the best rate stays. `tried` must not be empty.
RateChoice choice_among(const TriedRates& tried, const Point& cell, const RateCriterion& by = {}, bool parabola = true);

// The seeds of --seeds that judge, without that of a search.
std::vector<std::int64_t> judged_seeds(const StudyDeclaration& study);
// `point` with the values of `more`.
Point joined(Point point, const Point& more);

std::string name_of_cell(const Point& cell);  // for messages: "layerscale depth 48"; "this study" without axes

// The search of a study whose rules for rates (StudyDeclaration::rates) are settled. If the losses of the first trials
// of a search are equal, the body does not read its rate: the search ends, and the other seeds train at its first rate.
// Throws Error if no trial of a search has measured the criterion. `study` must outlive the search.
NextPoints rate_search(const StudyDeclaration& study);
// A line for the user when a search has named its next trials: the body does not read its rate, so the search ends
// after its first trials; or no rate trains so far. Empty otherwise.
std::string note_on_rates(const StudyDeclaration& study, const Search& search, const Chance& chance);
inline constexpr std::size_t usual_trials = 6;  // trials of an average search
// The values of trials that a search compares, by rate. With Study::one_rate_for(), they are the sums over the
// combinations, and infinite if one of these has no finite value.
TriedRates losses_of(const std::vector<const Record*>& trials, const RateCriterion& by);
// Whether the trials of a search end with equal losses at all rates, as those of a body that does not read its rate.
bool ignores_rate(const std::vector<const Record*>& trials, const RateCriterion& by);
// The choice of a search that has ended, from its trials.
RateChoice choice_by(const std::vector<const Record*>& trials, const Point& cell, const RateCriterion& by,
                     bool parabola);

// The rates that are chosen so far, in the order of `trials`, which are all ended trials. The rate of a cell is that of
// the choice whose cell it contains: with Study::one_rate_for(), several combinations share a choice.
std::vector<RateChoice> chosen_rates(const StudyDeclaration& study, const std::vector<Record>& trials,
                                     const Chance& chance);
// The points of trials at neighbouring rates that verdicts want (StudyResults::wanted), for all judged seeds of the
// combination.
std::vector<Point> neighbour_trials(const StudyDeclaration& study, const StudyResults& results);

// The trials that follow those of the first round in an average search, for --dry-run: three more trials of the search
// and the judged trials of each cell, at the first rate of the search. Empty if the study has no search.
std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& cells);
// Sentences for --dry-run about the trials of the search, the judged trials and the neighbours. Empty without a search.
std::string plan_of_search(const StudyDeclaration& study, const std::vector<Point>& cells);
// The number of steps of a trial of the search: half of the steps, or all steps if the warm-up takes more than half of
// the half. As words, "150 steps"; "half of the steps" if cells differ.
std::string search_steps_words(const StudyDeclaration& study, const std::vector<Point>& cells);

}  // namespace plumb::lab
