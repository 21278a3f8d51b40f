// The loss and accuracy of a network on a set of images.
#pragma once

#include <cstdint>
#include <functional>

#include "experiments/vision/data/image_set.h"
#include "nn/module.h"

namespace plumb::vision {

// The mean cross-entropy and the accuracy (in [0, 1]) of a model over the images of a set; few_images() (data/split.h)
// draws a part of a set. The model maps images [B, C, H, W] to logits [B, classes]. The forward passes build no graph.
// evaluate() throws Error for an empty set, for batch < 1, or if the logits have another shape.
struct Evaluation {
  double loss, accuracy;
};
// Evaluates a layer in evaluation mode. Afterwards, the layer and its children have their former modes again, even
// after an exception.
Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization,
                    std::int64_t batch = 256);
// Evaluates any other function, such as an ensemble or a model with flipped images. This overload does not switch
// modules to evaluation mode; the caller must do that.
Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set,
                    const Normalization& normalization, std::int64_t batch = 256);

}  // namespace plumb::vision
