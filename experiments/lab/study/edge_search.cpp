#include "experiments/lab/study/edge_search.h"

#include <utility>

namespace plumb::lab {
namespace {

std::vector<int> next_ticks(const EdgeSearch& s, const std::map<int, Share>& known) {
  if (known.empty()) return {0};
  std::vector<int> next;
  const auto ask = [&](std::optional<int> tick) {
    if (tick) next.push_back(*tick);
  };
  if (const std::optional<int> from = foothold(known)) {
    ask(next_above(known, *from, s.octaves, s.highest));
    if (s.edges == EdgeSearch::Edges::both) ask(next_below(known, *from, s.octaves, s.lowest));
  } else {
    ask(s.look(known));
  }
  return next;
}

}  // namespace

NextPoints edge_search(std::function<EdgeSearch()> settings) {
  return [settings = std::move(settings)](const Search& search) {
    const EdgeSearch s = settings();
    std::vector<Point> points;
    for (const int tick : next_ticks(s, shares(search.so_far, s.axis, s.octaves)))
      points.push_back({{s.axis, s.value(tick)}});
    return points;
  };
}

}  // namespace plumb::lab
