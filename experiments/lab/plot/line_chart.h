// Line charts as SVG text. Values are shown on hover, through <title> elements. Text and lines have the colours of the
// page, so that charts are readable in light and dark mode. A chart outside a page has the light colours. A chart
// scales with its container through the viewBox.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab {

// Whether a plot has more than eight styles. In one frame, the lines of such a plot would cover each other.
bool is_crowded(const Plot& plot);

// The chart as one <svg> element that is 480 units wide. A crowded plot has a small panel for each series, with the
// lines of all series in the background. If no point can be drawn, the chart is the text "no data".
std::string render_svg(const Plot& plot);

// The CSS that sets the colours of the styles for a page, in light and dark mode. A page without this CSS has the light
// colours.
std::string plot_css();

}  // namespace plumb::lab
