// Converts layer statistics to JSON and back. Ledgers store layer statistics in this form.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/lab/signals/probe.h"

namespace plumb::lab {

// The layer statistics as a JSON object. The object has the fields of LayerStats, and one list for each column of the
// branches. Absent numbers and numbers that are not finite are written as null.
nlohmann::ordered_json to_json(const LayerStats& layers);
// Reads the object of to_json(). A null becomes an absent value if the field is optional, and NaN otherwise. Control
// characters in the names of branches become escapes, because a study folder may come from elsewhere. Throws Error if
// to_json() did not make the object.
LayerStats layers_from_json(const nlohmann::ordered_json& json);

// branch_columns() returns the names of the numbers of a branch, in the order of BranchStats. The second function
// returns the number of this name, or NaN if the number is absent.
const std::vector<std::string>& branch_columns();
double value_of(const BranchStats& row, std::string_view column);

}  // namespace plumb::lab
