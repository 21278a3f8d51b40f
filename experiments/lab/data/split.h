// A training set in two: what is trained on, and what rates and lengths are chosen on, so that the published test set
// stays unseen.
#pragma once

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

struct Split {
  ImageSet rest, part;  // images of each in the order of the set
};

// Draws `share` of the images of every class, rounded to whole images, as the part. A function of set and share alone:
// no seed moves it, and a larger share draws all that a smaller one does. Error unless 0 < share < 1, or where one of
// the two would be empty.
Split split(const ImageSet& set, double share);

// The data with so many of its training images, drawn so that each class keeps its share. Error where there are fewer,
// or for none.
ImageData with_few_training_images(ImageData data, std::int64_t count);

// The data with that share of the training images as validation set; the validation set that it had becomes `test`.
ImageData with_validation_split(ImageData data, double share);

}  // namespace plumb::lab
