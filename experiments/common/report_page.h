// The frame of a report: one HTML file that holds all it needs and opens in any browser without network or script, in light and dark mode,
// from 390 px up.
#pragma once

#include <string>
#include <vector>

#include "experiments/common/report.h"
#include "experiments/common/svg_plot.h"

namespace plumb::lab {

// The whole file; title is plain text, body markup.
std::string page(const std::string& title, const std::string& body);

// Parts of a body. Titles and captions are markup, names and values plain text.
std::string section(const std::string& title, const std::string& caption, const std::string& content);
std::string facts(const NamedTexts& texts, const char* extra_class = "");
std::string figures(const std::vector<Plot>& plots);
std::string scroll_region(const std::string& label, const std::string& table);  // scrolls sideways where the page is narrow

}  // namespace plumb::lab
