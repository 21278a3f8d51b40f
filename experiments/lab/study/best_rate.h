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

// The learning rates from which --best-lr chooses.
const std::vector<double>& rates_to_choose_from(const StudyDeclaration& study);
// The next trials of one combination of the other axes, as points with "lr" and "seed". The first round has all rates
// for the choosing seeds, the second round the best rate for the other seeds.
std::vector<Point> next_rates(const StudyDeclaration& study, const Search& search);
// The trials of the second round that will follow the named trials of a first round, for --dry-run. They have the
// lowest rate, as the best rate is not known yet. Empty without --best-lr.
std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& named);

// The records of judged seeds without their learning rates, and the records of choosing seeds, which decide claims that
// name learning rates.
std::vector<Record> at_own_rates(const StudyResults& results);
std::vector<Record> that_chose(const StudyResults& results);

}  // namespace plumb::lab
