// Converts signal passports to JSON, the form in which ledgers store them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// Returns one JSON object with the fields of a LayerStats, and one list for each column of its branches. Absent and
// non-finite numbers are written as null.
std::string to_json(const LayerStats& passport);
// Reads the text of to_json(). A null becomes an absent value if the field is optional, otherwise NaN. Throws Error if
// the text was not written by to_json().
LayerStats passport_from_json(std::string_view json);

// The names of a branch's numbers, in the column order of passport.csv; and the number of one name, or NaN if it is
// absent.
const std::vector<std::string>& branch_columns();
double value_of(const BranchStats& row, std::string_view column);

}  // namespace plumb::lab
