// The command-line options that select the images of a study.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "experiments/vision/data/image_set.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The values of the options. Each member is named after its option.
struct ImageOptions {
  std::string data = "glyphs";
  std::string data_dir;      // "": no folder
  std::string image_folder;  // "": no image folder; otherwise equal to data_dir, and `data` is image-folder
  // The side of the images of an image folder after resizing. No value: the shorter side of the first training image.
  std::optional<std::int64_t> image_size = 224;
  std::int64_t train_images = 0;  // number of images to train on; 0: all
  double image_crop = 1;          // see FolderOptions::crop (data/image_folder.h)
  NormalizationKind normalization = NormalizationKind::data;
  // The share of the training images that is used for validation. 0: the published test set is used (data/split.h).
  double validation_split = 0;
  std::int64_t eval_images = 0;  // number of validation images; 0: all

  // Declares the options in the section Training, and a rule, which throws UsageError if options exclude each other.
  void declare(Cli& cli);
};

}  // namespace plumb::vision
