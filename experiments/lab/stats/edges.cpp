#include "experiments/lab/stats/edges.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace plumb::lab {
namespace {

// The shares with all ticks negated. Code that finds the upper edge then finds the lower edge.
std::map<int, Share> mirrored(const std::map<int, Share>& known) {
  std::map<int, Share> other;
  for (const auto& [tick, share] : known) other[-tick] = share;
  return other;
}

double wilson(const Share& s, double sign) {
  constexpr double z = 1.959964;
  const auto n = static_cast<double>(s.seeds);
  const double p = s.value(), middle = p + z * z / (2 * n),
               reach = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  return std::clamp((middle + sign * reach) / (1 + z * z / n), 0.0, 1.0);
}

template <class Trial>
std::map<int, Share> shares_of(const std::vector<const Trial*>& trials, const std::string& axis,
                               const Octaves& octaves) {
  std::map<int, Share> found;
  for (const Trial* r : trials) {
    if (r->status == Status::failed) continue;  // a failure says nothing about the method
    const Point& point = r->point;
    Share& share = found[octaves.tick_of(point.get<double>(axis))];
    ++share.seeds;
    share.trained += r->status == Status::ok && r->value("trained") > 0;
  }
  return found;
}

}  // namespace

double Octaves::at(double tick) const { return start * std::exp2(tick / ticks); }
int Octaves::tick_of(double x) const { return static_cast<int>(std::lround(ticks * std::log2(x / start))); }

int Octaves::lowest_whole(double least) const {
  int tick = 0;
  while (at(tick - 1) >= least && tick_of(std::round(at(tick - 1))) == tick - 1 &&
         std::round(at(tick - 1)) < std::round(at(tick)))
    --tick;
  return tick;
}

double Share::low() const { return wilson(*this, -1); }
double Share::high() const { return wilson(*this, 1); }
std::string to_string(const Share& share) { return fmt::format("{}/{}", share.trained, share.seeds); }

std::map<int, Share> shares(const std::vector<const Record*>& trials, const std::string& axis, const Octaves& octaves) {
  return shares_of(trials, axis, octaves);
}
std::map<int, Share> shares(const std::vector<const TrialResult*>& trials, const std::string& axis,
                            const Octaves& octaves) {
  return shares_of(trials, axis, octaves);
}

std::optional<Edge> edge_above(const std::map<int, Share>& known, int from) {
  const auto start = known.find(from);
  if (start == known.end() || !start->second.most()) return std::nullopt;
  Edge edge{from};
  for (auto at = std::next(start); at != known.end(); ++at) {
    if (!at->second.most()) {
      edge.outside = at->first;
      break;
    }
    edge.inside = at->first;
  }
  return edge;
}

std::optional<int> next_above(const std::map<int, Share>& known, int from, const Octaves& octaves, int last) {
  const std::optional<Edge> edge = edge_above(known, from);
  if (!edge) return std::nullopt;
  if (edge->outside)
    return *edge->outside - edge->inside > 1 ? std::optional((edge->inside + *edge->outside) / 2) : std::nullopt;
  return edge->inside < last ? std::optional(std::min(edge->inside + octaves.ticks, last)) : std::nullopt;
}

std::optional<Edge> edge_below(const std::map<int, Share>& known, int from) {
  std::optional<Edge> edge = edge_above(mirrored(known), -from);
  if (edge) {
    edge->inside = -edge->inside;
    if (edge->outside) edge->outside = -*edge->outside;
  }
  return edge;
}

std::optional<int> next_below(const std::map<int, Share>& known, int from, const Octaves& octaves, int last) {
  const std::optional<int> next = next_above(mirrored(known), -from, octaves, -last);
  return next ? std::optional(-*next) : std::nullopt;
}

std::optional<int> foothold(const std::map<int, Share>& known) {
  std::optional<int> best;
  for (const auto& [tick, share] : known)
    if (share.most() && (!best || std::abs(tick) < std::abs(*best))) best = tick;
  return best;
}

Region region_of(const std::map<int, Share>& known, const Octaves& octaves) {
  const std::optional<int> from = foothold(known);
  if (!from) return {};
  const auto above = edge_above(known, *from), below = edge_below(known, *from);
  return {(above->middle() - below->middle()) / octaves.ticks, !above->outside || !below->outside, below, above};
}

}  // namespace plumb::lab
