#include "experiments/vision/study.h"

#include <memory>
#include <nlohmann/json.hpp>

#include "nn/models/card_fields.h"

namespace plumb::vision {

Study::Study(std::string name, std::string question, Parts parts)
    : lab::Study(std::move(name), std::move(question), {.optimization = parts.optimization}), parts_(parts) {
  parts.network ? add(network_) : add_without_options(network_);
  parts.optimization ? add(augmentation_) : add_without_options(augmentation_);
  add(images_);
  if (parts.network) options().warmup.reset();
  problem([this](const StudyOptions& o) { return std::make_unique<ImageProblem>(images_, o.batch); });
  check([this](const DataFacts& data) { check_images(data); });
  check_points([this](const Point& point, const DataFacts& data) {
    const ImageSet sizes = image_sizes(data);
    if (parts_.network) group_at<NetworkOptions>(point).check_for(sizes);
    group_at<AugmentOptions>(point).make(images_.data, sizes, options_at(point).batch);
  });
  describe([this](const DataFacts& data) { return texts(data); }, [this] { return network_.describe_warmup(); });
}

int Study::run(int argc, const char* const* argv, const std::function<void(Trial&)>& body) {
  return lab::Study::run(argc, argv, [&](lab::Trial& trial) {
    Trial of_images(trial);
    body(of_images);
  });
}

void Study::train(Trial& trial) const {
  nn::ViT model(vit(trial));
  trial.train(model);
}

const ImageProblem& images(const lab::Trial& trial) { return trial.problem<ImageProblem>(); }

nn::ViTOptions vit(lab::Trial& trial, const ViTChoice& choice) {
  const auto network = trial.group<NetworkOptions>();
  nn::ViTOptions o = network.vit(images(trial).data().train, trial.steps());
  if (const auto depth = choice.depth ? choice.depth : trial.find<std::int64_t>("depth")) o.depth = *depth;
  if (choice.method)
    o.method = *choice.method;
  else if (const auto gate = trial.find<std::string>("gate"))
    o.method = nn::MethodChoice(*gate);
  const nn::Recipe recipe = network.recipe_of(*o.method);
  trial.default_warmup(recipe.warmup);
  o.recipe = recipe;
  o.seed = trial.seed();
  trial.describe_model(nn::card_text<nlohmann::ordered_json>(o));
  return o;
}

Step::Step(const lab::Trial& trial, const Augmentation& augment, std::int64_t first)
    : images_(vision::images(trial).data().train),
      loader_(images_, vision::images(trial).normalization(),
              {.batch = trial.options().batch, .seed = trial.seed(), .augment = augment, .start_step = first}),
      next_(first) {}

const Batch& Step::batch() {
  for (; next_ <= number(); ++next_) {
    const HostBatch loaded = loader_.next();
    if (next_ == number()) batch_ = to_tensors(loaded, images_);
  }
  return batch_;
}

}  // namespace plumb::vision
