// The facts about the images of a problem, which run.json keeps among the facts about the data.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/lab/record/data_facts.h"
#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// The name of the share of validation images that a network classifies correctly.
inline constexpr const char* val_accuracy = "val_accuracy";

// The text of DataFacts::further for images of these sizes. Only the sizes and the number of classes are used.
std::string further_facts(const ImageSet& sizes, std::int64_t validation_images);
// Reads the sizes and the number of classes; the set has no images. Throws Error if the problem has no images.
ImageSet image_sizes(const DataFacts& data);

}  // namespace plumb::vision
