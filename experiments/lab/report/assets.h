// The style sheet and the script of reports. The build embeds page.css and page.js from this folder in the library
// (plumb_embed in cmake/PlumbTargets.cmake).
#pragma once

#include <string_view>

namespace plumb::lab {

// The text of page.css.
std::string_view page_css();
// The text of page.js. The script contains no less-than sign, so that each less-than sign in a report opens a tag.
std::string_view page_js();

}  // namespace plumb::lab
