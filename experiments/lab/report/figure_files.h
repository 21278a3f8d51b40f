// Writes the figures of a report as files in the study folder.
#pragma once

#include <filesystem>
#include <vector>

#include "experiments/lab/plot/figure.h"

namespace plumb::lab {

// Writes figures/<id>.svg and figures/<id>.csv into the study folder `run`, and removes the figures of an earlier call
// that are not among `figures`. Other files in the folder stay.
void write_figures(const std::filesystem::path& run, const std::vector<Figure>& figures);

}  // namespace plumb::lab
