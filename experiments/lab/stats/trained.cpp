#include "experiments/lab/stats/trained.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace plumb::lab {
namespace {

constexpr double widest_share = 0.5;  // of the range of all losses
constexpr double deviations = 50;     // of the losses around the mean of their series and side, pooled

bool is_candidate(double loss, double chance) { return std::isfinite(loss) && has_trained(loss, chance, {}); }

struct Sides {
  double squares = 0, degrees = 0;  // of the losses around the mean of their series and side
  bool mixed = false;               // whether a series has losses on both sides
};

Sides sides_of(const std::vector<Outcomes>& series, double chance, double below) {
  Sides s;
  for (const Outcomes& losses : series) {
    double sum[2] = {}, squares[2] = {}, count[2] = {};
    for (const double loss : losses)
      if (is_candidate(loss, chance)) {
        const int side = loss > below;
        sum[side] += loss, squares[side] += loss * loss, ++count[side];
      }
    s.mixed = s.mixed || (count[0] > 0 && count[1] > 0);
    for (int side = 0; side < 2; ++side)
      if (count[side] > 1)
        s.squares += std::max(squares[side] - sum[side] * sum[side] / count[side], 0.0), s.degrees += count[side] - 1;
  }
  return s;
}

}  // namespace

std::optional<TrainingGap> training_gap(const std::vector<Outcomes>& series, double chance) {
  std::vector<double> all;
  for (const Outcomes& losses : series)
    for (const double loss : losses)
      if (is_candidate(loss, chance)) all.push_back(loss);
  if (all.size() < 3) return std::nullopt;
  std::ranges::sort(all);
  std::size_t widest = 1;
  for (std::size_t i = 2; i < all.size(); ++i)
    if (all[i] - all[i - 1] > all[widest] - all[widest - 1]) widest = i;
  const TrainingGap gap{.below = all[widest - 1], .above = all[widest]};
  const double width = gap.above - gap.below;
  if (width <= widest_share * (all.back() - all.front())) return std::nullopt;
  if (std::isfinite(chance) && chance - gap.above >= gap.above - gap.below) return std::nullopt;
  const Sides sides = sides_of(series, chance, gap.below);
  if (!sides.mixed || sides.degrees == 0 || width <= deviations * std::sqrt(sides.squares / sides.degrees))
    return std::nullopt;
  return gap;
}

bool has_trained(double loss, double chance, const std::optional<TrainingGap>& gap) {
  return std::isfinite(loss) && loss < near_chance_share * chance && !(gap && loss >= gap->above);
}

std::vector<Outcomes> with_failures(std::vector<Outcomes> series, double chance) {
  const std::optional<TrainingGap> gap = training_gap(series, chance);
  for (Outcomes& losses : series)
    for (double& loss : losses)
      if (!std::isnan(loss) && !has_trained(loss, chance, gap)) loss = std::numeric_limits<double>::infinity();
  return series;
}

}  // namespace plumb::lab
