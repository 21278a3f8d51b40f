#include "experiments/lab/stats/rate_choice.h"

#include <algorithm>
#include <cmath>

#include "experiments/lab/plot/text.h"

namespace plumb::lab {

const RateChoice* choice_for(const std::vector<RateChoice>& rates, const Point& cell) {
  const auto found = std::ranges::find_if(rates, [&](const RateChoice& r) { return cell.contains(r.cell); });
  return found == rates.end() ? nullptr : &*found;
}

double rate_at(double rate, double half_octaves) { return rounded_to(rate * std::exp2(half_octaves / 2), 3); }

}  // namespace plumb::lab
