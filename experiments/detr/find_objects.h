// Finds objects in images with trained weights: bin/detr --weights W --image cat.jpg.
#pragma once

#include <string>

#include "experiments/lab/options/study_options.h"
#include "experiments/vision/data/lab.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The options --weights, --image and --score.
class ObjectSearch {
 public:
  void declare(Cli& cli);
  bool given() const { return !weights_.empty(); }

  // Finds the objects in the image, or in each image at or below the folder. stdout has the objects of each image, or
  // with --json a list of the images with their objects; boxes are in pixels of the image file. The folder --out, or a
  // new folder under runs/, receives a picture of each image with its objects (SVG). Returns the exit status, which is
  // 1 if an image cannot be read; the other images are still searched. Throws the errors of nn::load_detr().
  int run(const StudyOptions& options) const;

 private:
  std::string weights_, image_;
  double score_ = 0.5;
};

}  // namespace plumb::vision
