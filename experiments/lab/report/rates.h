// The learning rates that searches have chosen, as a section of the report and as a file.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The table "Learning rates". A row has a combination, the chosen rate, the tried rate with the best value
// (RateChoice::by) and that value, and the number of tried rates. A row says if no rate trains, if the chosen rate is
// at the bound of the search, and if a better rate was passed over. `chosen_by` follows the title, and `caption` says
// how the rates were chosen. The table is empty if `rates` is empty.
Section rates_section(const std::vector<RateChoice>& rates, const std::string& chosen_by, const std::string& caption);

// The text of rates.csv. Each rate that a search tried, and each trial at a neighbouring rate, has a row with the
// values of the combination on its axes, the rate, the seed, the kind of the trial ("search" or "neighbour"), the value
// of the criterion (empty if not finite), and the chosen rate (empty if the body does not read its rate).
std::string rates_csv(const StudyResults& results);

}  // namespace plumb::lab
