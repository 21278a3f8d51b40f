// Data sets of PNG and JPEG files in folders, one folder for each class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// How the images of a folder are resized for a network.
struct FolderOptions {
  std::optional<std::int64_t> side = 224;  // pixels; no value: the shorter side of the first training image
  double crop = 1;                         // ImageSet::crop
};

// Opens a folder of images. It may contain train/CLASS/FILE and val/CLASS/FILE (or validation/ or test/), like the
// training images of ImageNet, or CLASS/FILE. In the second case there are no validation images, and
// with_validation_split can make them. Classes are numbered in the order of their names, as in torchvision. A link to a
// folder is followed if it is a class, but not below a class. The files are read only when they are used, except that
// the first training image is read if options.side has no value. Throws Error in one line if the folder does not exist,
// a class has no image, or the two parts have different classes.
ImageData open_image_folder(const std::string& dir, const FolderOptions& options);

// If the first image file of the set is smaller than the images of the set, returns a message: "images of 32 x 32
// pixels (a/cat/1.png) are enlarged to 224 x 224". Otherwise, or if the file cannot be read, returns "".
std::string enlargement(const ImageSet& set);

// The paths of all PNG and JPEG files (.png, .jpg, .jpeg in any case) at any depth in the folder `path`, sorted. If
// `path` is a file, the result is this file. Throws Error if `path` does not exist or the folder has no such file.
std::vector<std::string> image_files(const std::string& path);

}  // namespace plumb::lab
