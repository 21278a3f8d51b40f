// Facts about the data of a study, for run.json and reports.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/record/chance.h"
#include "experiments/lab/record/measure.h"

namespace plumb::lab {

// Pairs of a name and a text, in order.
using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// Facts about the training and validation data. The data are not included.
struct DataFacts {
  // An example: the name "mnist" and the text "mnist, 60000 training images, 10000 validation images: the published
  // test set; 10 classes".
  std::string name = {}, text = {};
  std::string validation_is = {};  // such as "the published test set"
  std::string hash = {};           // hash of the data, such as the inputs and labels
  // The plural of a sample, such as "images". If the noun is given, trials measure their number per second
  // ("images_per_second"). Not in run.json.
  std::string samples = {};
  std::string note = {};  // a note that a study may print for a user who expects other data. Not in run.json.
  // Further facts of the problem, as the text of a JSON object, such as the sizes of images; "": no further facts.
  std::string further = {};
  // The values that the problem measures, "train_loss" first. All other values of trials are plain numbers.
  std::vector<Measure> measures = {};
  std::vector<Reference> references = {};  // levels of baselines, such as a linear model

  // The chance level of the training loss, which decides whether a network trained.
  Chance chance() const;
};

}  // namespace plumb::lab
