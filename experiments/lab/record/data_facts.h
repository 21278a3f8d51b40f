// Facts about the machine and the data of a study, for run.json and reports.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/data/image_set.h"
#include "experiments/lab/record/chance.h"
#include "experiments/lab/record/measure.h"

namespace plumb::lab {

// Pairs of a name and a text, in order.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// The results of softmax regression on the pixels (problem/linear_model.h).
struct LinearModel {
  double train_loss, val_loss, val_accuracy;
};

// The machine that computes the trials.
struct Machine {
  std::string device;  // such as "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3"
  int threads = 1;     // number of threads in use
};

// Facts about the images of a problem. The pixels are not included.
struct ImageFacts {
  ImageSet sizes = {};                     // has only the sizes and the number of classes
  std::optional<LinearModel> linear = {};  // the results of a linear model on the images, if known
  std::int64_t validation_images = 0;      // number of validation images that an evaluation uses; 0: unknown
  // Says that small training images are enlarged: the text of enlargement() (data/image_folder.h). Not in run.json.
  std::string enlarged = {};
};

// Facts about the training and validation data. The data are not included.
struct DataFacts {
  // An example: the name "mnist" and the text "mnist, 60000 training images, 10000 validation images: the published
  // test set; 10 classes".
  std::string name = {}, text = {};
  std::string validation_is = {};         // such as "the published test set"
  std::string hash = {};                  // hash of the data, such as the images and labels
  std::optional<ImageFacts> images = {};  // no value: the problem has no images
  // The values that the problem measures, "train_loss" first. All other values of trials are plain numbers.
  std::vector<Measure> measures = {};

  // The chance level of the training loss, which decides whether a network trained.
  Chance chance() const;
  // The sizes of the images and the number of classes. Throws Error if the problem has no images.
  const ImageSet& image_sizes() const;
};

}  // namespace plumb::lab
