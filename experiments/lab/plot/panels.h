// Small multiples: the form in which line_chart.h draws a plot with many series.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab::svg {

// One <svg> element with a panel for each name of a series, three in a row, all with the same axes. Each panel also
// shows the lines of all series in grey, behind its series.
std::string render_panels(const Plot& plot);

}  // namespace plumb::lab::svg
