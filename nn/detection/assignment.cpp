#include "nn/detection/assignment.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace plumb::nn {
namespace {

constexpr std::int64_t none = -1;

// Dual variables u (rows) and v (columns) with cost - u - v >= 0, and = 0 for every pair. Each call of add() pairs one
// more row, along the shortest path in these reduced costs from the row to a free column. `cost(row, column)` returns a
// cost; there are at least as many columns as rows.
template <class Cost>
class Pairing {
 public:
  Pairing(std::int64_t rows, std::int64_t columns, Cost cost)
      : cost_(cost),
        u_(static_cast<std::size_t>(rows), 0),
        v_(static_cast<std::size_t>(columns), 0),
        row_of_(static_cast<std::size_t>(columns), none) {}

  void add(std::int64_t row) {
    const std::size_t columns = v_.size();
    std::vector<double> distance(columns, std::numeric_limits<double>::infinity());  // from `row` to the column
    std::vector<std::int64_t> before(columns, none);  // the column before this column on the path
    std::vector<bool> reached(columns, false);
    std::int64_t from = row, last = none;  // the path ends at column `last`, whose partner is row `from`
    double length = 0;
    do {
      std::size_t nearest = columns;
      for (std::size_t j = 0; j < columns; ++j) {
        if (reached[j]) continue;
        const double d =
            length + cost_(from, static_cast<std::int64_t>(j)) - u_[static_cast<std::size_t>(from)] - v_[j];
        if (d < distance[j]) distance[j] = d, before[j] = last;
        if (nearest == columns || distance[j] < distance[nearest] ||
            (distance[j] == distance[nearest] && row_of_[j] == none && row_of_[nearest] != none))
          nearest = j;
      }
      reached[nearest] = true;
      length = distance[nearest];
      last = static_cast<std::int64_t>(nearest);
      from = row_of_[nearest];
    } while (from != none);
    u_[static_cast<std::size_t>(row)] += length;
    for (std::size_t j = 0; j < columns; ++j)
      if (reached[j] && row_of_[j] != none) {
        u_[static_cast<std::size_t>(row_of_[j])] += length - distance[j];
        v_[j] -= length - distance[j];
      }
    while (last != none) {  // every column of the path takes the partner of the column before it
      const auto at = static_cast<std::size_t>(last);
      row_of_[at] = before[at] == none ? row : row_of_[static_cast<std::size_t>(before[at])];
      last = before[at];
    }
  }

  // The row of each column; `none` for a free column.
  const std::vector<std::int64_t>& row_of() const { return row_of_; }

 private:
  Cost cost_;
  std::vector<double> u_, v_;
  std::vector<std::int64_t> row_of_;
};

}  // namespace

std::vector<RowColumn> assign(const CostMatrix& c) {
  check(c.rows >= 0 && c.columns >= 0 && std::ssize(c.costs) == c.rows * c.columns,
        "[assign] expected a cost for each of {} rows and {} columns, got {} costs", c.rows, c.columns, c.costs.size());
  for (std::int64_t i = 0; i < c.rows; ++i)
    for (std::int64_t j = 0; j < c.columns; ++j)
      check(std::isfinite(c.at(i, j)), "[assign] expected finite costs, got {} in row {} and column {}", c.at(i, j), i,
            j);
  const bool wide = c.rows <= c.columns;
  const std::int64_t few = std::min(c.rows, c.columns), many = std::max(c.rows, c.columns);
  Pairing pairing(few, many, [&](std::int64_t i, std::int64_t j) { return wide ? c.at(i, j) : c.at(j, i); });
  for (std::int64_t i = 0; i < few; ++i) pairing.add(i);
  std::vector<RowColumn> pairs;
  for (std::int64_t j = 0; j < many; ++j)
    if (const std::int64_t i = pairing.row_of()[static_cast<std::size_t>(j)]; i != none)
      pairs.push_back(wide ? RowColumn{i, j} : RowColumn{j, i});
  std::ranges::sort(pairs, {}, &RowColumn::row);
  return pairs;
}

}  // namespace plumb::nn
