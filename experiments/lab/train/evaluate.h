// The loss and accuracy of a network on a set of images.
#pragma once

#include <cstdint>
#include <functional>

#include "experiments/lab/data/image_set.h"
#include "nn/module.h"

namespace plumb::lab {

// Mean cross-entropy and accuracy in [0, 1] over the first `most` images of a set (0: all), of a model that maps images
// [B, C, H, W] to logits [B, classes]. Nothing is recorded.
struct Evaluation {
  double loss, accuracy;
};
// A layer is in evaluation mode meanwhile; afterwards it and everything below have the modes that they had, whatever
// was thrown.
Evaluation evaluate(nn::Layer& model, const ImageSet& set, const Normalization& normalization, std::int64_t batch = 256,
                    std::int64_t most = 0);
// Any other function is called as it is: several layers, an ensemble, images turned over before.
Evaluation evaluate(const std::function<Tensor(const Tensor& images)>& model, const ImageSet& set,
                    const Normalization& normalization, std::int64_t batch = 256, std::int64_t most = 0);

}  // namespace plumb::lab
