// Softmax regression on the pixels of a data set: a network that does no better has learned nothing that needs a
// network.
#pragma once

#include <optional>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/record/study_description.h"

namespace plumb::lab {

// Softmax regression on the normalised pixels, on the CPU in f32: batches of 64 in one pass over the training images
// (200 to 1,000 steps), AdamW, a rate of 3e-4 that falls as a cosine. The training loss is the mean of the last 20
// steps. Takes less than a second for 32 x 32 pixels. Nothing for images in files.
std::optional<LinearModel> linear_model(const ImageData& data);
// The same for glyphs as they are, without a computation.
LinearModel linear_model_of_glyphs();

}  // namespace plumb::lab
