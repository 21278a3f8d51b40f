// Converts signal passports to JSON and back. Ledgers store passports in this form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// The passport as one JSON object. The object has the fields of LayerStats, and one list for each column of the
// branches. Absent numbers and numbers that are not finite are written as null.
std::string to_json(const LayerStats& passport);
// Reads the text of to_json(). A null becomes an absent value if the field is optional, and NaN otherwise. Throws Error
// if to_json() did not write the text.
LayerStats passport_from_json(std::string_view json);

// branch_columns() returns the names of the numbers of a branch, in the column order of passport.csv. The second
// function returns the number of this name, or NaN if the number is absent.
const std::vector<std::string>& branch_columns();
double value_of(const BranchStats& row, std::string_view column);

}  // namespace plumb::lab
