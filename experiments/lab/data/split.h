// Splits a training set into images for training and images for validation, so that learning rates and numbers of steps
// can be chosen without the published test set.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// The two parts of a set. Each part keeps the order of the set.
struct Split {
  ImageSet rest, part;
};

// Draws `share` of the images of every class, rounded to whole images, as the member `part` of the result. The result
// depends only on the set and the share, not on a seed. A larger share contains all images of a smaller share. Throws
// Error unless 0 < share < 1, and also if a part would be empty.
Split split(const ImageSet& set, double share);

// The data with only `count` training images, drawn so that the shares of the classes stay the same. Throws Error
// unless `count` is between 1 and the number of training images.
ImageData with_few_training_images(ImageData data, std::int64_t count);

// The data with `share` of the training images as validation images. The former validation images become `test`. Throws
// Error under the same conditions as split().
ImageData with_validation_split(ImageData data, double share);

}  // namespace plumb::lab
