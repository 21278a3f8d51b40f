// Splits a training set into images to train on and images to validate on, so that learning rates and numbers of steps
// can be chosen without the published test set.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

// The two parts of a set. The images of each part are in the order of the set.
struct Split {
  ImageSet rest, part;
};

// Draws `share` of the images of every class, rounded to whole images, as `part`. The result depends only on the set
// and the share, not on a seed, and a larger share contains the images of a smaller one. Throws Error unless 0 < share
// < 1, or if a part would be empty.
Split split(const ImageSet& set, double share);

// The data with only `count` of its training images, drawn so that each class keeps its share. Throws Error unless
// `count` is between 1 and the number of training images.
ImageData with_few_training_images(ImageData data, std::int64_t count);

// The data with `share` of the training images as validation images. The former validation images become `test`. Throws
// Error like split().
ImageData with_validation_split(ImageData data, double share);

}  // namespace plumb::lab
