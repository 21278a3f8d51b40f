// Line charts as SVG text. Values are shown on hover through <title> elements. Text and lines have the colours of the
// page, so that charts are readable in light and dark mode; without a page they have the light colours. A chart scales
// with its container through the viewBox.
#pragma once

#include <string>

#include "experiments/lab/plot/chart.h"

namespace plumb::lab {

// Whether a plot has more than eight styles, so that lines in one frame would cover each other.
bool is_crowded(const Plot& plot);

// One <svg> element, 480 units wide. A crowded plot has a small panel for each series, with the lines of all series in
// the background. If there is no point to draw, the text is "no data".
std::string render_svg(const Plot& plot);

// CSS for the page: the colours of the styles in light and dark mode. Without it the light colours are used.
std::string plot_css();

}  // namespace plumb::lab
