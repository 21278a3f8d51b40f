// Pictures in files: PNG (libpng) and JPEG (libjpeg-turbo), told apart by their first bytes, whatever the name.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/common/data/image_ops.h"

namespace plumb::lab {

// Three channels (red, green, blue), 8 bits each, as Pillow's convert("RGB") has them: grey is spread, transparency dropped, turning by EXIF left
// undone, values taken as they are whatever colour space is named. A damaged JPEG gives what can be made out, as there. Error, in one line that
// begins with the path, for what is no PNG or JPEG, is cut off, a damaged PNG, or has more than 2^26 pixels.
Pixels read_image(const std::string& path);

// The bytes of a PNG file; of one channel or three.
std::string png(const Pixels& image);

}  // namespace plumb::lab
