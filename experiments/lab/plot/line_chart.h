// Line charts as SVG text. Values show on hover through <title> elements. Text and lines take the page's colours, so
// that a chart is right in light and in dark mode, and the light ones where there is no page; it scales with its
// container through the viewBox.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab {

// True for a plot of more than eight styles: lines in one frame would cover each other.
bool is_crowded(const Plot& plot);

// One <svg> element, 480 units wide. A crowded plot has a small panel for each series, before the lines of all. Without
// a point to draw it says "no data".
std::string render_svg(const Plot& plot);

// CSS for the page: the colours of the styles in light and in dark mode. Without it the light ones are used.
std::string plot_css();

}  // namespace plumb::lab
