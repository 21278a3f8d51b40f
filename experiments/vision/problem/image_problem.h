// Classification of images, with the cross-entropy as its loss.
#pragma once

#include "experiments/lab/problem/problem.h"
#include "experiments/vision/data/image_set.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/options/image_options.h"

namespace plumb::vision {

// The problem that --data, --data-dir, --image-folder and the other options of images select. evaluate() gives val_loss
// and val_accuracy.
class ImageProblem : public Problem {
 public:
  // Throws the errors of open_data() and of the validation split. Throws Error if the `batch` images of a step are more
  // than the training set, or if no validation images are left.
  ImageProblem(const ImageOptions& options, std::int64_t batch);

  DataFacts facts() const override { return facts_; }
  void add_baseline(DataFacts& facts) const override;  // adds linear_model() (linear_model.h)
  std::unique_ptr<Task> task(const TaskSettings& settings, const nn::Layer& model) const override;
  Values evaluate(nn::Layer& model) const override;
  void calibrate(nn::Layer& model, const TaskSettings& settings) const override;
  std::map<std::string, std::string> weights_metadata(const nn::Module& model) const override;

  // The images, and the normalization of the pixels.
  const ImageData& data() const { return data_; }
  const Normalization& normalization() const { return normalization_; }

 private:
  ImageData data_;
  Normalization normalization_;
  DataFacts facts_;
  bool plain_glyphs_;  // whether the data are glyphs without options that change the data
};

// The batches and the loss of a trial on the training images of an ImageProblem, with a normalization and augmentation
// of the caller's choice.
class ImageTask : public Task {
 public:
  // `images` and `model` must outlive the task. Throws the same errors as BatchLoader.
  ImageTask(const ImageSet& images, const TaskSettings& settings, const nn::Layer& model, Normalization normalization,
            const Augmentation& augment = {}, double label_smoothing = 0);
  std::function<Tensor()> loss_of(std::int64_t step) override;
  double target_entropy() const override { return target_entropy_; }  // of smoothed and mixed labels

 private:
  const ImageSet& images_;
  std::int64_t batch_;
  std::uint64_t seed_;
  const nn::Layer& model_;
  Normalization normalization_;
  Augmentation augment_;
  double label_smoothing_, target_entropy_ = 0;
  std::unique_ptr<BatchLoader> loader_;
};

}  // namespace plumb::vision
