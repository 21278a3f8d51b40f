#include "experiments/lab/study/combinations.h"

#include <algorithm>

namespace plumb::lab {

std::vector<Point> combinations_of(const StudyDeclaration& study) {
  std::vector<const AxisData*> order;
  for (const AxisData& axis : study.axes)
    if (axis.declared) order.push_back(&axis);
  std::ranges::stable_sort(order, {}, [](const AxisData* a) { return !a->slowest; });
  std::vector<Point> points{Point()};
  for (const AxisData* axis : order) {
    std::vector<Point> longer;
    for (const Point& point : points)
      std::visit(
          [&](const auto& values) {
            for (const auto& value : values) {
              longer.push_back(point);
              longer.back().set(axis->name, value);
            }
          },
          axis->values);
    points = std::move(longer);
  }
  if (study.wanted) std::erase_if(points, [&](const Point& p) { return !study.wanted(p); });
  usage_check(!points.empty(), "{} runs no combination of these values; see --help", study.name);
  return points;
}

std::vector<Point> cells_of(const StudyDeclaration& study) {
  std::vector<Point> cells;
  for (const Point& point : combinations_of(study)) {
    Point cell;
    for (const AxisData& axis : study.axes)
      if (const AxisValue* value = point.find(axis.name); value && axis.name != "lr") cell.set(axis.name, *value);
    if (std::ranges::find(cells, cell) == cells.end()) cells.push_back(std::move(cell));
  }
  return cells;
}

Point place_of(const StudyDeclaration& study, Point cell) {
  for (const std::string& axis : study.shared_by) cell = cell.without(axis);
  return cell;
}

std::vector<Point> places_of(const StudyDeclaration& study) {
  std::vector<Point> places;
  for (const Point& cell : cells_of(study))
    if (Point place = place_of(study, cell); std::ranges::find(places, place) == places.end())
      places.push_back(std::move(place));
  return places;
}

}  // namespace plumb::lab
