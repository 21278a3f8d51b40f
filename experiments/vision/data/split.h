// Splits a training set into images for training and images for validation, so that learning rates and numbers of steps
// can be chosen without the published test set.
#pragma once

#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// The two parts of a set. Each part keeps the order of the set.
struct Split {
  ImageSet rest, part;
};

// Draws `share` of the images of every class, rounded to whole images, as the member `part` of the result. The result
// depends only on the set and the share, not on a seed. A larger share contains all images of a smaller share. Throws
// Error unless 0 < share < 1, and also if a part would be empty.
Split split(const ImageSet& set, double share);

// Draws `count` samples with the labels [N] so that the shares of the classes stay the same. Returns their sorted
// indices. The result depends only on labels and count, not on a seed. A larger count contains all samples of a smaller
// count. Throws Error unless `count` is between 1 and N. The first samples of a set would not do: the files of image
// folders are sorted by class.
std::vector<std::int64_t> few_of(const std::vector<std::int32_t>& labels, std::int64_t count);
// The images few_of(set.labels, count), in the order of the set.
ImageSet few_images(const ImageSet& set, std::int64_t count);

// The data with only `count` training or validation images, as in few_images(). Throws Error unless `count` is between
// 1 and the number of these images.
ImageData with_few_training_images(ImageData data, std::int64_t count);
ImageData with_few_validation_images(ImageData data, std::int64_t count);

// The data with `share` of the training images as validation images. The former validation images become `test`. Throws
// Error under the same conditions as split().
ImageData with_validation_split(ImageData data, double share);

}  // namespace plumb::vision
