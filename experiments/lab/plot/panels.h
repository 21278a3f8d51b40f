// Small multiples: the form in which line_chart.h draws a plot with many series.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

// The chart as one <svg> element with a panel for each name of a series. Three panels are in a row, and all panels have
// the same axes. Behind its own series, each panel shows the lines of all series in grey.
std::string render_panels(const Plot& plot);

}  // namespace plumb::lab::svg
