#include "experiments/vision/problem/image_problem.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "experiments/lab/cli/cli.h"
#include "experiments/lab/hash.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/image_folder.h"
#include "experiments/vision/data/open_data.h"
#include "experiments/vision/data/split.h"
#include "experiments/vision/options/augment_options.h"
#include "experiments/vision/problem/evaluate.h"
#include "experiments/vision/problem/image_facts.h"
#include "experiments/vision/problem/linear_model.h"
#include "nn/gates/gate.h"

namespace plumb::vision {
namespace {

ImageData data_of(const ImageOptions& o, std::int64_t batch) {
  ImageData data = open_data(o.data, o.data_dir, {o.image_size, o.image_crop});
  if (o.validation_split > 0) data = with_validation_split(std::move(data), o.validation_split);
  const bool has_train = std::filesystem::is_directory(std::filesystem::path(o.data_dir) / "train");
  check(data.validation.size() > 0, "{}: there are no validation images ({}); give --validation-split 0.1", o.data_dir,
        has_train ? "it has train/ but no val/" : "it has no train/ and val/, so its folders are read as classes");
  if (o.train_images > 0) data = with_few_training_images(std::move(data), o.train_images);
  if (o.eval_images > 0)
    data = with_few_validation_images(std::move(data), std::min(o.eval_images, data.validation.size()));
  check(batch <= data.train.size(), "--batch {} is more than the {} training images of {}{}", batch, data.train.size(),
        data.name,
        o.validation_split > 0 ? fmt::format(" that --validation-split {:g} leaves", o.validation_split) : "");
  return data;
}

// A hash of all data that training and evaluation read from the images.
std::string hash_of_images(const ImageData& data) {
  Hash hash;
  for (const ImageSet* set : {&data.train, &data.validation}) {
    hash.add(fmt::format("{} {} {} {};", set->channels, set->height, set->width, set->classes));
    hash.add({reinterpret_cast<const char*>(set->pixels.data()), set->pixels.size()});
    hash.add({reinterpret_cast<const char*>(set->labels.data()), set->labels.size() * sizeof set->labels[0]});
    if (!set->in_files()) continue;
    hash.add(fmt::format("{:g};", set->crop));
    // For images in files, the hash is computed from class folder, name and size, because reading all pixels would take
    // hours.
    for (const std::string& file : set->files) {
      std::error_code error;
      const std::filesystem::path path = file;
      hash.add(fmt::format("{}/{} {};", path.parent_path().filename().string(), path.filename().string(),
                           std::filesystem::file_size(path, error)));
    }
  }
  return hash.text();
}

DataFacts facts_of(const ImageData& data) {
  const std::int64_t validation = data.validation.size();
  return {.name = data.name,
          .text = fmt::format("{}, {} training images, {} validation images: {}; {} classes", data.name,
                              data.train.size(), validation, data.validation_is, data.train.classes),
          .validation_is = data.validation_is,
          .hash = hash_of_images(data),
          .samples = "images",
          .note = enlargement(data.train),
          .further = further_facts(data.train, validation),
          .measures = measures_of_classification(data.train.classes, validation)};
}

}  // namespace

ImageProblem::ImageProblem(const ImageOptions& o, std::int64_t batch)
    : data_(data_of(o, batch)),
      normalization_(normalization_of(data_.train, o.normalization)),
      facts_(facts_of(data_)),
      plain_glyphs_(o.data == "glyphs" && o.train_images == 0 && o.validation_split == 0) {}

void ImageProblem::add_baseline(DataFacts& facts) const {
  const std::optional<LinearModel> linear = plain_glyphs_ ? linear_model_of_glyphs() : linear_model(data_);
  if (linear && std::isfinite(linear->train_loss + linear->val_loss)) facts.references = references_of(*linear);
}

std::unique_ptr<Task> ImageProblem::task(const TaskSettings& s, const nn::Layer& model) const {
  const auto augment = s.group<AugmentOptions>();
  return std::make_unique<ImageTask>(data_.train, s, model, normalization_,
                                     augment.make(data_.name, data_.train, s.study.batch), augment.smoothing());
}

Values ImageProblem::evaluate(nn::Layer& model) const {
  const Evaluation e = vision::evaluate(model, data_.validation, normalization_);
  return {{"val_loss", e.loss}, {"val_accuracy", e.accuracy}};
}

void ImageProblem::calibrate(nn::Layer& model, const TaskSettings& s) const {
  BatchLoader loader(data_.train, normalization_, {.batch = s.study.batch, .seed = s.seed});
  nn::calibrate(model, to_tensors(loader.next(), data_.train).images);
}

std::map<std::string, std::string> ImageProblem::weights_metadata(const nn::Module& model) const {
  nn::ModelCard card = model_card(model);
  card.mean.assign(normalization_.mean.begin(), normalization_.mean.end());
  card.std.assign(normalization_.std.begin(), normalization_.std.end());
  card.class_names = data_.train.class_names;
  return nn::metadata_of(card);
}

ImageTask::ImageTask(const ImageSet& images, const TaskSettings& settings, const nn::Layer& model,
                     Normalization normalization, const Augmentation& augment, double label_smoothing)
    : images_(images),
      batch_(settings.study.batch),
      seed_(settings.seed),
      model_(model),
      normalization_(std::move(normalization)),
      augment_(augment),
      label_smoothing_(label_smoothing) {}

std::function<Tensor()> ImageTask::loss_of(std::int64_t step) {
  if (!loader_)
    loader_ = std::make_unique<BatchLoader>(images_, normalization_,
                                            LoaderOptions{.batch = batch_,
                                                          .seed = seed_,
                                                          .augment = augment_,
                                                          .workers = loading_threads(images_),
                                                          .start_step = step});
  const Batch batch = to_tensors(loader_->next(), images_);
  target_entropy_ = vision::target_entropy(batch, images_.classes, label_smoothing_);
  return [this, batch] { return vision::loss_of(model_(batch.images), batch, label_smoothing_); };
}

}  // namespace plumb::vision
