// Studies of networks that classify images: the images, the options of a ViT and of the augmentation, and the batches
// of a loop of one's own.
//
//   vision::Study study("layerscale_init", "Does the initial value of LayerScale matter?");
//   const auto depth = study.axis<int>("--depths", {12, 24, 48}, "Numbers of blocks");
//   return study.run(argc, argv, [&](lab::Trial& trial) {
//     nn::ViT model(vision::vit(trial, {.depth = trial[depth], .gate = "layerscale"}));
//     trial.train(model);
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "experiments/lab/study/study.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/options/augment_options.h"
#include "experiments/vision/options/image_options.h"
#include "experiments/vision/options/network_options.h"
#include "experiments/vision/problem/image_facts.h"
#include "experiments/vision/problem/image_problem.h"
#include "nn/models/vit.h"

namespace plumb::vision {

// The parts of a study.
struct Parts {
  bool network = true;       // options of the ViT that vit() describes
  bool optimization = true;  // options of the training by Trial::train, and of the augmentation
};

// A study whose problem is the classification of images.
class Study : public lab::Study {
  using lab::Study::problem;  // a study with another problem is a lab::Study

 public:
  Study(std::string name, std::string question, Parts parts = {});

  // The options of the groups. The values before run() are the defaults.
  ImageOptions& images() { return images_; }
  NetworkOptions& network() { return network_; }
  AugmentOptions& augmentation() { return augmentation_; }

 private:
  void check_images(const DataFacts& data);
  NamedTexts texts(const DataFacts& data) const;

  Parts parts_;
  ImageOptions images_;
  NetworkOptions network_;
  AugmentOptions augmentation_;
};

// The problem of a trial: its images, and the normalization of the pixels. Throws Error if the problem of the study is
// another one.
const ImageProblem& images(const Trial& trial);

// The options of a ViT that the body of a trial sets. For every other option, the value comes from the axis of the same
// name ("--dims" sets --dim); without such an axis, the value comes from the command line. A field of nn::ViTOptions
// that has no option (mlp_ratio) keeps its default; the body can set the field in the result of vit().
struct ViTChoice {
  std::optional<std::int64_t> depth = {};   // default: the value of the axis "depth"
  std::optional<nn::GateChoice> gate = {};  // default: the value of the axis "gate"
};
// The options of a ViT for the images of the data set. The seed is the seed of the trial, and the other options come
// from the command line; an option that the program does not declare has its default. Unless Trial::track() is called,
// the record of the trial describes this network, and its recipe decides the warm-up if the call does not.
nn::ViTOptions vit(Trial& trial, const ViTChoice& choice = {});

// The training batches of a trial, one batch for each step, for a range-based for loop. Apart from the batches, the
// loop is the same as with Trial::each_step().
class Batches {
 public:
  // An iterator for range-based for. The increment of the iterator finishes a step and begins the next step.
  class Iterator {
   public:
    const Batch& operator*() const { return owner_->batch_; }
    Iterator& operator++() {
      ++step_;
      owner_->load(step_);
      return *this;
    }
    bool operator!=(std::nullptr_t end) const { return step_ != end; }

   private:
    friend Batches;
    Iterator(Batches* owner, Steps::Iterator step) : owner_(owner), step_(step) {}
    Batches* owner_;
    Steps::Iterator step_;
  };

  Batches(Trial& trial, const Augmentation& augment);
  // For range-based for. begin() starts the first step.
  Iterator begin();
  std::nullptr_t end() const { return nullptr; }

 private:
  void load(const Steps::Iterator& step);

  Steps steps_;
  const ImageSet& images_;
  BatchLoader loader_;
  Batch batch_;
};
// The batches of a loop of one's own over the steps of a trial. `augment` is the augmentation of the images, which the
// options of the command line do not set. Throws Error if the problem of the study is not an ImageProblem.
Batches batches(Trial& trial, const Augmentation& augment = {});

}  // namespace plumb::vision
