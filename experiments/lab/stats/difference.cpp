#include "experiments/lab/stats/difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace plumb::lab {
namespace {

Side other(Side side) { return side == Side::first ? Side::second : side == Side::second ? Side::first : side; }

}  // namespace

Difference negated(Difference d) {
  std::swap(d.duel.wins, d.duel.losses);
  std::swap(d.duel.first_ahead, d.duel.second_ahead);
  for (double& difference : d.duel.differences) difference = -difference;
  d.median = negated(d.median), d.better = other(d.better);
  return d;
}

Difference turned(Difference d) {
  d = negated(std::move(d));
  std::swap(d.duel.failed_first, d.duel.failed_second);
  d.lost = other(d.lost);
  return d;
}

std::string verdict_words(const Difference& d) {
  std::string words = d.better == Side::first ? "better" : d.better == Side::second ? "worse" : "";
  if (d.equal) words += fmt::format("{}equal within {:g}", words.empty() ? "" : ", ", *d.within);
  return words.empty() ? "no verdict" : words;
}

std::string effect_words(const Median& m, double sign) {
  if (m.n == 0) return "no seed trained with both";
  const double by = sign * m.value, turn = by < 0 ? -1 : 1;
  std::string text = by == 0 ? "equal" : fmt::format("{} by {:.3g}", by < 0 ? "lower" : "higher", turn * by);
  if (m.low)
    text += fmt::format(" ({:.3g} to {:.3g})", std::min(turn * sign * *m.low, turn * sign * *m.high),
                        std::max(turn * sign * *m.low, turn * sign * *m.high));
  return text;
}

std::string describe(const Difference& d, double sign) {
  const Duel& u = d.duel;
  if (u.seeds == 0) return "no pairs";
  std::string text = fmt::format("{}:{}", u.wins, u.losses);
  if (u.wins + u.losses < u.seeds) text += fmt::format(" of {} seeds", u.seeds);
  text += ", " + effect_words(d.median, sign);
  if (u.failed_first + u.failed_second > 0)
    text += fmt::format("{}; {} and {} of {} seeds failed", d.median.n > 0 ? " where both train" : "", u.failed_first,
                        u.failed_second, u.seeds);
  if (!d.obstacle.empty()) return fmt::format("{}; E = {:.3g}; {}", text, d.evidence, d.obstacle);
  text += fmt::format("; E = {:.3g}, needs {:.3g} in a family of {}",
                      d.better == Side::none ? d.evidence : d.at_all_rates, d.needs, d.family);
  if (d.lost != Side::none)
    text += d.neighbours == AtNeighbours::this_rate ? "; at this rate"
            : d.neighbours == AtNeighbours::yes     ? "; stands at its neighbours"
            : d.neighbours == AtNeighbours::not_trained
                ? "; its neighbours are not trained"
                : fmt::format("; does not stand at its neighbours (E = {:.3g})", d.at_all_rates);
  for (const int step : d.beyond)
    text += fmt::format("; {} the chosen rate is beyond the bound of the rate", step < 0 ? "below" : "above");
  if (d.equal && d.better != Side::none) text += fmt::format("; equal within {:g}", *d.within);
  return text;
}

void add_cells(CsvTable& table, const Difference& d, double sign) {
  const Duel& u = d.duel;
  for (const std::int64_t count : {u.wins, u.losses, u.seeds, u.failed_first, u.failed_second}) table.cell(count);
  const double low = sign * d.median.low.value_or(NAN), high = sign * d.median.high.value_or(NAN);
  table.cell(sign * d.median.value).cell(std::min(low, high)).cell(std::max(low, high));
  table.cell(d.evidence).cell(d.needs).cell(d.lost == Side::none ? NAN : d.at_all_rates);
  table.cell(std::string_view(d.lost == Side::none ? "" : enum_name(d.neighbours)));
  table.cell(d.within ? d.equality : NAN).cell(std::string_view(d.obstacle));
}

}  // namespace plumb::lab
