// Softmax regression on the pixels of a data set, as a baseline. A network has learned more than a linear model only if
// the network is better than this baseline.
#pragma once

#include <optional>
#include <vector>

#include "experiments/lab/record/measure.h"
#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// The results of softmax regression on the pixels.
struct LinearModel {
  double train_loss, val_loss, val_accuracy;
};

// Trains softmax regression on the normalized pixels, on the CPU in f32. The training is one pass over the training
// images in batches of 64, but at least 200 and at most 1,000 steps, with AdamW and the learning rate 3e-4 with cosine
// decay. The training loss is the mean over the last 20 steps. For images of 32 x 32 pixels, the training takes less
// than a second. Returns no value for images in files or for fewer than two classes.
std::optional<LinearModel> linear_model(const ImageData& data);
// The stored result of linear_model() for the data set glyphs with its default options.
LinearModel linear_model_of_glyphs();
// The results as baselines of a study.
std::vector<Reference> references_of(const LinearModel& model);

}  // namespace plumb::vision
