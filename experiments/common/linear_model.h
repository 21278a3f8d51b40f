// What a linear model on the pixels makes of a data set: a network that does no better has learned nothing that needs one.
#pragma once

#include <optional>
#include <vector>

#include "experiments/common/data/image_set.h"
#include "experiments/common/references.h"

namespace plumb::lab {

inline constexpr const char* linear_model_name = "a linear model on the pixels";

struct LinearModel {
  double train_loss, val_loss, val_accuracy;
};

// Softmax regression on the normalised pixels: 400 steps of AdamW on 256 images, a rate of 1e-3 that falls as a cosine, on the CPU in f32; the
// training loss is the mean of the last 20 steps. About a second for 32 x 32 pixels. Nothing for images in files.
std::optional<LinearModel> linear_model(const ImageData& data);
// The same of glyphs as they are, known.
LinearModel linear_model_of_glyphs();

std::vector<Reference> references_of(const LinearModel& model);

}  // namespace plumb::lab
