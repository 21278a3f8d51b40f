// Small multiples: what line_chart.h draws of a plot with many series.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

// One <svg> element: a panel for each name of a series, three in a row, all on the same axes, with the lines of all
// series in grey behind its own.
std::string render_panels(const Plot& plot);

}  // namespace plumb::lab::svg
