// Pictures in files: PNG (libpng) and JPEG (libjpeg-turbo), told apart by their first bytes, whatever the name.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/lab/data/image_ops.h"

namespace plumb::lab {

// Three channels (red, green, blue), 8 bits each, with the values of Pillow's convert("RGB"): grey is spread,
// transparency dropped, turning by EXIF left undone; values are taken as they are, whatever colour space is named.
// Samples of 16 bits become their high byte, in grey too, which Pillow clips to 255 instead. A damaged JPEG gives what
// can be made out, as in Pillow. Error, in one line that begins with the path, if the file is no PNG or JPEG, ends
// before its picture does, is a damaged PNG, or has more than 2^26 pixels.
Pixels read_image(const std::string& path);

// The bytes of a PNG file; of one channel or three.
std::string png(const Pixels& image);

}  // namespace plumb::lab
