// Studies of networks that classify images: the images, the options of a ViT and of the augmentation, and the batches
// of a loop of one's own.
//
//   vision::Study study("layerscale_init", "Does the initial value of LayerScale matter?");
//   const auto depth = study.depths({12, 24, 48});
//   return study.run(argc, argv, [&](vision::Trial& trial) {
//     nn::ViT model(vision::vit(trial, {.depth = trial[depth], .method = "layerscale"}));
//     trial.train(model);
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

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

// A step of a loop over batches of images.
class Step {
 public:
  std::int64_t number() const { return step_->number(); }  // counted from 0
  // The training batch of this step.
  const Batch& batch();
  // Minimises a loss of the batch (lab::Step::minimise).
  template <class Loss>
  const Gradients& minimise(Loss&& loss, double target_entropy = 0) {
    return step_->minimise(std::forward<Loss>(loss), target_entropy);
  }

 private:
  friend class Loop;
  Step(const lab::Trial& trial, const Augmentation& augment, std::int64_t first);

  lab::Step* step_ = nullptr;
  const ImageSet& images_;
  BatchLoader loader_;
  Batch batch_ = {};
  std::int64_t next_;  // the step whose batch the loader returns next
};

// The steps of a trial, each with its batch, for a range-based for loop (Trial::loop).
class Loop {
  using Steps = decltype(std::declval<lab::Loop&>().begin());
  // The increment of the iterator finishes a step and begins the next step.
  class Iterator : public Steps {
   public:
    Step& operator*() const { return *step_; }

   private:
    friend Loop;
    Iterator(Steps at, Step& step) : Steps(at), step_(&step) { step.step_ = &*at; }
    Step* step_;
  };

 public:
  Loop(const lab::Trial& trial, const Augmentation& augment, const std::function<lab::Loop()>& steps)
      : steps_(steps()), step_(trial, augment, steps_.first()) {}
  // For range-based for. begin() starts the first step.
  Iterator begin() { return {steps_.begin(), step_}; }
  std::nullptr_t end() const { return nullptr; }

 private:
  lab::Loop steps_;
  Step step_;
};

// A trial of a study of images, whose loops have batches. `augment` is the augmentation of the images, which the
// options of the command line do not set.
class Trial : public lab::Trial {
 public:
  explicit Trial(const lab::Trial& trial) : lab::Trial(trial) {}
  // The steps of a training loop of one's own, which updates the model (lab::Trial::loop).
  //   for (vision::Step& step : trial.loop(model, optimizer)) {
  //     const vision::Batch& batch = step.batch();
  //     step.minimise([&] { return cross_entropy(model(batch.images), batch.labels); });
  //   }
  Loop loop(nn::Layer& model, nn::Optimizer& optimizer, lab::LoopOptions options = {},
            const Augmentation& augment = {}) {
    return Loop(*this, augment, [&] { return lab::Trial::loop(model, optimizer, std::move(options)); });
  }
  // The steps of a loop whose parts are called apart: backward(), check_divergence(), Optimizer::step(), log().
  Loop loop(const Augmentation& augment = {}) {
    return Loop(*this, augment, [&] { return lab::Trial::loop(); });
  }
};

// A study whose problem is the classification of images.
class Study : public lab::Study {
  using lab::Study::problem;  // a study with another problem is a lab::Study

 public:
  Study(std::string name, std::string question, Parts parts = {});

  // Runs the whole program, as lab::Study::run(), with a body that gets a vision::Trial.
  int run(int argc, const char* const* argv, const std::function<void(Trial&)>& body);
  // The body of a study of ViTs whose axes and options describe the network: trains the ViT of vit(trial).
  void train(Trial& trial) const;

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
const ImageProblem& images(const lab::Trial& trial);

// The options of a ViT that the body of a trial sets. For every other option, the value comes from the axis of the same
// name ("--dims" sets --dim); without such an axis, the value comes from the command line. A field of nn::ViTOptions
// that has no option (mlp_ratio) keeps its default; the body can set the field in the result of vit().
struct ViTChoice {
  std::optional<std::int64_t> depth = {};       // default: the value of the axis "depth"
  std::optional<nn::MethodChoice> method = {};  // default: the value of the axis "gate"
};
// The options of a ViT for the images of the data set. The seed is the seed of the trial, and the other options come
// from the command line; an option that the program does not declare has its default. Unless Trial::track() is called,
// the record of the trial describes this network, and its recipe decides the warm-up if the call does not.
nn::ViTOptions vit(lab::Trial& trial, const ViTChoice& choice = {});

}  // namespace plumb::vision
