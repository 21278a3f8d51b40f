// Softmax regression on the pixels of a data set: a network that does no better has learned nothing that needs a network.
#pragma once

#include <optional>
#include <vector>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/report/references.h"

namespace plumb::lab {

inline constexpr const char* linear_model_name = "a linear model on the pixels";

struct LinearModel {
  double train_loss, val_loss, val_accuracy;
};

// Softmax regression on the normalised pixels, on the CPU in f32: batches of 64 in one pass over the training images (200 to 1,000 steps), AdamW, a
// rate of 3e-4 that falls as a cosine. The training loss is the mean of the last 20 steps. Takes less than a second for 32 x 32 pixels. Nothing for
// images in files.
std::optional<LinearModel> linear_model(const ImageData& data);
// The same for glyphs as they are, without a computation.
LinearModel linear_model_of_glyphs();

std::vector<Reference> references_of(const LinearModel& model);

}  // namespace plumb::lab
