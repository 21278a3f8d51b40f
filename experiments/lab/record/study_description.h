// run.json, the description of a study folder: the program, data and settings of the study.
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
  std::int64_t validation_images = 0;      // number of validation images that an evaluation uses
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

// The part of run.json that does not depend on the call: run.json without the settings and the facts about the call.
struct StudyFacts {
  Machine machine = {};
  DataFacts data = {};
  std::string code = {};                  // the value of code_hash()
  RateCriterion rates_by = {};            // the value that chooses learning rates, if a search does
  std::vector<std::string> outputs = {};  // further files that this experiment writes
  // The texts of the claims of this call, from which a new folder takes StudyDescription::claims. parse() leaves the
  // vector empty.
  std::vector<std::string> claims = {};
};

// The content of run.json.
struct StudyDescription {
  std::string experiment = {}, version = {}, commit = {}, build = {};
  std::string program = {};  // name of the program that ran the study, which is only shown and never executed
  StudyFacts facts = {};
  std::string command_line = {}, started = {};
  std::string settings = {};  // the settings as a JSON object
  // The names of the settings that decide the results of trials. These settings must be equal in all folders that are
  // merged and in all calls that resume the study.
  std::vector<std::string> fixed = {};
  // The code hashes of further trials in the tables, in addition to facts.code.
  std::vector<std::string> accepted_code = {};
  // The texts of the claims that the study had when its folder was made. A claim with another text was added later.
  std::vector<std::string> claims = {};
  // The seeds of each look at the results, in order. A look begins when --resume adds seeds after a judged trial has
  // finished, and has all seeds of the looks before it. run.json has at least one look.
  std::vector<std::vector<std::int64_t>> looks = {};

  // Adds the seeds that no look has. If `seen` is true, results of the last look may have been seen, so the seeds begin
  // a new look; otherwise the seeds belong to the last look. Without new seeds the function has no effect. There must
  // be a look.
  void add_seeds(const std::vector<std::int64_t>& seeds, bool seen);

  std::string text() const;  // the JSON text of run.json
  // Reads the text of run.json. Throws UsageError if `text` is not the text of a run.json; the message begins with
  // `file`.
  static StudyDescription parse(const std::string& text, const std::string& file);
};

}  // namespace plumb::lab
