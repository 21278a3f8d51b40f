// Detection of objects: a network predicts a set of boxes with classes (nn::Detr), and is trained with the loss of a
// set.
#pragma once

#include "experiments/lab/problem/problem.h"
#include "experiments/vision/data/detection_set.h"
#include "experiments/vision/problem/average_precision.h"
#include "nn/models/detr.h"

namespace plumb::lab {
class Cli;
}

namespace plumb::vision {

// The data of a detection problem, and the options that select them. Declare them before the study, which refers to
// them.
struct DetectionOptions {
  std::string data = "shapes";  // shapes (data/shapes.h) or coco: files in COCO's format
  // The files of annotations and the folders of their images, for coco.
  std::string train_annotations = {}, train_images = {}, val_annotations = {}, val_images = {};
  std::int64_t image_side = 0;                  // longer side to which images are resized, in pixels; 0: unchanged
  std::int64_t train_count = 0, val_count = 0;  // number of images to use, drawn by few_of() (data/split.h); 0: all
  double mirror = 0.5;                          // probability that a training image is mirrored left to right

  // Declares the options in the section Data, and rules for them.
  void declare(Cli& cli);
  // Opens the data. The validation images get the categories of the training images; their file may lack
  // categories and list them in another order. Throws the errors of open_coco(), and Error if a category of the
  // validation images has another id or name, or has objects but is no category of the training images.
  DetectionData open() const;
};

// An object that a network found in an image. The box is in shares of the sides of the image.
struct FoundObject {
  std::int64_t label = 0;
  double score = 0;  // the probability of the class
  nn::Box box = {};
};
// Returns the predictions after the last layer for each image, best first: each query with its most probable class.
std::vector<std::vector<FoundObject>> found_objects(const nn::Detections& predicted);

// Returns the loss of a detector that knows nothing of an image, as an estimate of the loss of an untrained network:
// in each layer, every query predicts the frequencies of the classes with the weights of the loss, and the mean box.
double loss_of_a_constant(const nn::Targets& targets, const nn::DetrOptions& model);

// The problem that DetectionOptions select. The networks must be nn::Detr. evaluate() gives val_loss (a mean over
// batches of 50 validation images), the numbers of AveragePrecision as val_ap, val_ap_50, .., and query_spread: the
// standard deviation of the centres of the predicted boxes over the queries of an image, as a mean over images and both
// coordinates, in shares of the sides. If all queries predict the same box, the spread is 0.
class DetectionProblem : public Problem {
 public:
  // `model` has the numbers of queries and of layers of the networks; its number of classes does not matter. Throws the
  // errors of DetectionOptions::open(), and Error if the batch is larger than the training set.
  DetectionProblem(const DetectionOptions& data, const nn::DetrOptions& model, const StudyOptions& options);

  DataFacts facts() const override { return facts_; }
  std::unique_ptr<Task> task(const TaskSettings& settings, const nn::Layer& model) const override;
  Values evaluate(nn::Layer& model) const override;
  void calibrate(nn::Layer& model, const TaskSettings& settings) const override;
  std::map<std::string, std::string> weights_metadata(const nn::Module& model) const override;  // nn::DetrCard

  const DetectionData& data() const { return data_; }                    // the images and their objects
  const Normalization& normalization() const { return normalization_; }  // that of the pixels

 private:
  double mirror_;
  DetectionData data_;
  nn::Targets train_targets_, val_targets_;
  Normalization normalization_;
  DataFacts facts_;
};

}  // namespace plumb::vision
