// Reads images from PNG (libpng) and JPEG (libjpeg-turbo) files, and writes PNG. The format of a file is recognised by
// the first bytes of the file, not by the file name.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/vision/data/image_ops.h"

namespace plumb::vision {

// The most pixels of an image that read_image() reads.
constexpr std::int64_t most_pixels = 1 << 26;

// Reads an image as three channels (red, green, blue) of 8 bits. The values are those of convert("RGB") in Pillow,
// except for grey images of 16 bits:
// - A grey value is copied to all three channels, and transparency is dropped.
// - EXIF orientation and colour spaces are ignored.
// - Samples of 16 bits are reduced to their high byte. For grey images, Pillow clips 16-bit samples to 255 instead.
// - From a damaged JPEG, the part that can be decoded is returned, as in Pillow.
// Throws Error if the file is not a PNG or JPEG, is cut off, is a damaged PNG, has more than most_pixels, or exceeds
// another limit that stands at the beginning of image_file.cpp, such as 100 scans of a JPEG; the message is one line
// that begins with the path. A file within the limits takes at most some seconds and 1 GiB.
Pixels read_image(const std::string& path);

// The EXIF orientation of a JPEG file, 1 to 8: how programs turn or mirror the stored pixels when they show the photo.
// read_image() does not turn. The result is 1, upright, if the first 64 KiB state none. Throws Error if the file cannot
// be read.
int exif_orientation(const std::string& path);

// The content of a PNG file for an image with one or three channels. Throws Error for another number of channels.
std::string png(const Pixels& image);

}  // namespace plumb::vision
