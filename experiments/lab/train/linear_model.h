// Softmax regression on the pixels of a data set, as a baseline: a network must do better to show that it has learned
// more than a linear model.
#pragma once

#include <optional>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// Trains softmax regression on the normalised pixels, on the CPU in f32: one pass over the training images in batches
// of 64 (limited to between 200 and 1,000 steps), AdamW, learning rate 3e-4 with cosine decay. The training loss is the
// mean over the last 20 steps. Takes less than a second for images of 32 x 32 pixels. Returns nothing for images in
// files or for fewer than two classes.
std::optional<LinearModel> linear_model(const ImageData& data);
// The stored result of linear_model() for the data set glyphs with its default options.
LinearModel linear_model_of_glyphs();

}  // namespace plumb::lab
