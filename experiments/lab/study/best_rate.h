// --best-lr: each method is judged at its best learning rate. Some seeds choose the rate, and the other seeds are
// judged.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Declares --best-lr if the study has an axis "lr" and no search.
void declare_best_lr(StudyDeclaration& study);

// The learning rates among which --best-lr chooses.
const std::vector<double>& rates_to_choose_from(const StudyDeclaration& study);
// The next trials for one combination of values on the other axes, as points with "lr" and "seed". The first round has
// all rates for the choosing seeds, the second round the best rate for the other seeds.
std::vector<Point> next_rates(const StudyDeclaration& study, const Search& search);
// For --dry-run: the trials of the second round that will follow the named trials of the first round. The points have
// the lowest rate, because the best rate is not known yet. Empty without --best-lr.
std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& named);

// The records of the judged seeds, without the learning rate in their points.
std::vector<Record> at_own_rates(const StudyResults& results);
// The records of the seeds that chose the rates. Claims that name a learning rate are judged by these records.
std::vector<Record> that_chose(const StudyResults& results);

}  // namespace plumb::lab
