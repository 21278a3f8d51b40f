// --best-lr: a method is judged at its own best learning rate, which seeds that do not judge have chosen.
#pragma once

#include <cstdint>
#include <vector>

#include "experiments/lab/report/results.h"
#include "experiments/lab/study/declaration.h"

namespace plumb::lab {

// Declares --best-lr where the study has an axis of rates and no search of its own.
void declare_best_lr(StudyDeclaration& study);

// The rates that are tried.
const std::vector<double>& rates_to_choose_from(const StudyDeclaration& study);
// The next trials of one combination of the other axes: all rates at the seeds that choose, then the best rate at the
// others.
std::vector<Point> next_rates(const StudyDeclaration& study, const Search& search);
// The trials that follow the choice of rates, for named trials of a first round; each at the lowest rate, in place of
// the rate that will be chosen. Empty without --best-lr.
std::vector<Point> trials_to_follow(const StudyDeclaration& study, const std::vector<Point>& named);

// The records that judge, without their rate; and those that chose, by which claims about rates are judged.
std::vector<Record> at_own_rates(const StudyResults& results);
std::vector<Record> that_chose(const StudyResults& results);

}  // namespace plumb::lab
