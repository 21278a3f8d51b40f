// The assignment problem: pairs the rows of a matrix of costs with its columns so that the sum of the costs is least.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plumb::nn {

// A matrix of costs, row-major [rows, columns].
struct CostMatrix {
  std::span<const double> costs;
  std::int64_t rows, columns;

  // Returns the cost of a row and a column.
  double at(std::int64_t row, std::int64_t column) const {
    return costs[static_cast<std::size_t>(row * columns + column)];
  }
};

// A row and its column.
struct RowColumn {
  std::int64_t row, column;
  bool operator==(const RowColumn&) const = default;
};

// Returns min(rows, columns) pairs, sorted by row, in which every row and every column occurs at most once, and whose
// sum of costs is least. The algorithm is the Hungarian method (Kuhn 1955) with shortest augmenting paths (Jonker and
// Volgenant 1987; Crouse 2016, whose form SciPy's linear_sum_assignment also has). The time is O(n^2 m) for n the
// smaller and m the larger number of rows and columns. Throws Error for a number of costs other than rows * columns,
// and for a cost that is not finite.
std::vector<RowColumn> assign(const CostMatrix& costs);

}  // namespace plumb::nn
