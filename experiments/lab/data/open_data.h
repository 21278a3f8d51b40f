// The data sets by name.
#pragma once

#include "experiments/lab/data/image_folder.h"
#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// glyphs (embedded), fashion-mnist, mnist, cifar-10, cifar-100, image-folder.
const std::vector<std::string>& data_set_names();

// Loads a set; `validation` is its published test set (split.h makes one of training images). `dir` is the folder that
// holds its files, plain or .gz, or the parent of that folder (DIR/fashion-mnist, DIR/cifar-100-binary, ...); glyphs
// needs none. UsageError for an unknown name or a missing `dir`; Error, in one line, when the files are not there or
// not what they should be.
ImageData open_data(const std::string& name, const std::string& dir, const FolderOptions& of_image_folder = {});

// Whether an image of that set, mirrored left to right, is of the same class: not glyphs, not digits.
bool mirrors_keep_class(const std::string& name);

}  // namespace plumb::lab
