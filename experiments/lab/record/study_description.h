// run.json: which program computed a run's folder, from what data, with which settings.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/lab/data/image_set.h"

namespace plumb::lab {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// How well softmax regression on the pixels does (train/linear_model.h).
struct LinearModel {
  double train_loss, val_loss, val_accuracy;
};

// What computes: "AMD EPYC, AVX-512, 2 threads, oneDNN 2.6.3", and the threads in use.
struct Machine {
  std::string device;
  int threads = 1;
};

// What was trained and validated on, without the images.
struct DataFacts {
  std::string name = {}, text = {};  // "mnist"; "mnist, 60000 training images, 10000 validation images: the published
                                     // test set; 10 classes"
  std::string validation_is = {};    // "the published test set"
  std::string hash = {};             // of the images and labels
  ImageSet images = {};              // sizes and classes alone
  std::optional<LinearModel> linear = {};  // what a linear model makes of it, where that is known
};

// What run.json says besides the settings.
struct StudyFacts {
  Machine machine = {};
  DataFacts data = {};
  std::string code = {};                  // code_hash()
  std::vector<std::string> outputs = {};  // files that the experiment writes besides those of every run
};

// run.json.
struct StudyDescription {
  std::string experiment = {}, version = {}, commit = {}, build = {};
  std::string program = {};  // path of the program that ran
  StudyFacts facts = {};
  std::string command_line = {}, started = {};
  std::string settings = {};  // a JSON object
  std::vector<std::string> fixed =
      {};  // the settings that decide how each trial ends: the same in all that goes together
  std::vector<std::string> accepted_code = {};  // besides facts.code: whose trials are in the tables

  std::string text() const;
  // Throws UsageError, in which `file` is the name, where the text is not that of a run.json, or is one of an older
  // layout.
  static StudyDescription parse(const std::string& text, const std::string& file);
};

}  // namespace plumb::lab
