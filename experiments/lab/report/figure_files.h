// A report's figures as files in the folder of its run.
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/lab/plot/figure.h"

namespace plumb::lab {

// Writes figures/<id>.svg and .csv into a run's folder, and removes those of a former call that are not among them.
// What else lies there stays.
void write_figures(const std::filesystem::path& run, const std::vector<Figure>& figures);

}  // namespace plumb::lab
