// Files of this folder that the library holds, byte for byte: the build makes the definitions from them
// (plumb_embed in cmake/PlumbTargets.cmake).
#pragma once

#include <string_view>

namespace plumb::lab {

std::string_view page_css();
// Has no less-than sign, so that every one in the body of a report opens a tag.
std::string_view page_js();

}  // namespace plumb::lab
