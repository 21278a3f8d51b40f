// The learning rates that searches have chosen, as a section of the report and as a file.
#pragma once

#include <string>
#include <vector>

#include "experiments/lab/plot/section.h"
#include "experiments/lab/report/results.h"

namespace plumb::lab {

// The table "Learning rates". A row has a combination, the chosen rate with its value (RateChoice::by), the values at
// the next lower and the next higher rate that the search tried, and the number of trials of the search. A row says if
// the chosen rate is at the bound of the search, if a better rate was passed over, and if the values do not tell rates
// apart. `chosen_by` follows the title, and `caption` says how the rates were chosen. The table is empty if `rates` is
// empty.
Section rates_section(const std::vector<RateChoice>& rates, const std::string& chosen_by, const std::string& caption);

// The text of rates.csv. Each rate that a search tried has a row with the values of the combination on its axes, the
// rate, the value of the criterion (empty if not finite) and whether the rate was chosen ("yes" or "no").
std::string rates_csv(const std::vector<RateChoice>& rates);

}  // namespace plumb::lab
