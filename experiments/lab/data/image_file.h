// Reads images from PNG (libpng) and JPEG (libjpeg-turbo) files, and writes PNG. The first bytes of a file decide its
// format, not its name.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/lab/data/image_ops.h"

namespace plumb::lab {

// Reads an image as three channels (red, green, blue) of 8 bits, with the same values as convert("RGB") of Pillow:
// - Grey is copied to all channels, and transparency is dropped.
// - EXIF orientation and colour spaces are ignored.
// - Samples of 16 bits are reduced to their high byte. For grey images Pillow clips them to 255 instead.
// - A damaged JPEG gives the part that can be decoded, as in Pillow.
// Throws Error if the file is not a PNG or JPEG, is cut off, is a damaged PNG, or has more than 2^26 pixels; the
// message is one line that begins with the path.
Pixels read_image(const std::string& path);

// The bytes of a PNG file of an image with one or three channels. Throws Error for another number of channels.
std::string png(const Pixels& image);

}  // namespace plumb::lab
