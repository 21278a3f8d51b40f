// Data sets of PNG and JPEG files in folders, one folder for each class.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// How the images of a folder are resized for a network.
struct FolderOptions {
  std::optional<std::int64_t> side = 224;  // in pixels; no value: the shorter side of the first training image
  double crop = 1;                         // see ImageSet::crop
};

// Opens a folder of images with one of two layouts:
// - train/CLASS/FILE and val/CLASS/FILE (or validation/ or test/ in place of val/), as in ImageNet
// - CLASS/FILE, without validation images; with_validation_split() can make validation images
// Classes are numbered in the order of their names, as in torchvision. The files of a class are those of image_files().
// The image files are read later, when an image is used. If options.side has no value, the first training image is read
// at once. Throws Error in one line if the folder does not exist, if a class has no image, or if the training and
// validation images have different classes.
ImageData open_image_folder(const std::string& dir, const FolderOptions& options);

// If the first image file of the set is smaller than the images of the set, returns a message such as "images of 32 x
// 32 pixels (a/cat/1.png) are enlarged to 224 x 224". Otherwise, or if the file cannot be read, returns "".
std::string enlargement(const ImageSet& set);

// The sorted names of the folders in `path`, without hidden folders and links to `path` or a folder around it. Hidden
// names begin with a dot, or are __MACOSX.
std::vector<std::string> class_folders(const std::string& path);

// The sorted paths of all PNG and JPEG files (.png, .jpg, .jpeg in upper or lower case) at any depth in the folder
// `path`. Hidden files and folders are left out. Symbolic links are followed, but no folder is read twice, so circles
// end. One line on stderr counts the files that are left out, by their endings, and the images behind links. If `path`
// is a file, the result contains only `path`. Throws Error if `path` does not exist or if the folder contains no such
// file.
std::vector<std::string> image_files(const std::string& path);

}  // namespace plumb::vision
