// Images in folders: one folder a class, PNG and JPEG files in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// What the images of a folder become for a network.
struct FolderOptions {
  std::optional<std::int64_t> side = 224;  // pixels; nothing: the shorter side of the first training image
  double crop = 1;                         // ImageSet::crop
};

// DIR/train/CLASS/FILE and DIR/val/CLASS/FILE (or validation, or test), as the training images of ImageNet come; or
// DIR/CLASS/FILE, without validation images: then with_validation_split makes them. Classes are numbered by the order
// of their names, as torchvision does. Files are looked at when they are wanted, not here. Error, in one line, where
// there is no such folder, a class has no image, or the two parts have other classes.
ImageData open_image_folder(const std::string& dir, const FolderOptions& options);

// Says that images in files are smaller than the images of the set: "images of 32 x 32 pixels (a/cat/1.png) are
// enlarged to 224 x 224". Empty for others, and if the first file cannot be read: the loader reports that.
std::string enlargement(const ImageSet& set);

// Links to folders are followed for classes themselves, not below them.
// Every PNG and JPEG file at or below the path, by its name (.png, .jpg, .jpeg in any case), in the order of their
// paths; a file is itself. Error where there is none.
std::vector<std::string> image_files(const std::string& path);

}  // namespace plumb::lab
