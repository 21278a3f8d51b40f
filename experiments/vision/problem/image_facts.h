// The facts about the images of a problem, which run.json keeps among the facts about the data.
#pragma once

#include <cstdint>
#include <string>

#include "experiments/lab/record/data_facts.h"
#include "experiments/vision/data/image_set.h"

namespace plumb::vision {

// The sizes of the images, and the extent of an evaluation.
struct ImageFacts {
  ImageSet sizes = {};                 // has only the sizes and the number of classes
  std::int64_t validation_images = 0;  // number of validation images that an evaluation uses; 0: unknown
};

// The text of DataFacts::further with these facts.
std::string further_facts(const ImageFacts& images);
// Reads the facts. Throws Error if the problem has no images.
ImageFacts image_facts(const DataFacts& data);

}  // namespace plumb::vision
