// Passports as JSON: what ledgers keep of them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// One object: what a LayerStats holds, and a list for each number of its branches. Numbers that are absent or not
// finite are null; read back they are absent, or NaN.
std::string to_json(const LayerStats& passport);
// Throws Error unless the text is what to_json wrote.
LayerStats passport_from_json(std::string_view json);

// The numbers of a branch by name, in the order of the columns of passport.csv; NaN where one is absent.
const std::vector<std::string>& branch_columns();
double value_of(const BranchStats& row, std::string_view column);

}  // namespace plumb::lab
