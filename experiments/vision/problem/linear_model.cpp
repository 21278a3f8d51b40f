#include "experiments/vision/problem/linear_model.h"

#include <algorithm>

#include "autograd/backward.h"
#include "autograd/ops.h"
#include "core/precision.h"
#include "experiments/vision/data/batch.h"
#include "experiments/vision/data/loader.h"
#include "experiments/vision/problem/evaluate.h"
#include "nn/layers/linear.h"
#include "nn/optim/optimizer.h"

namespace plumb::vision {

std::optional<LinearModel> linear_model(const ImageData& data) {
  if (data.train.in_files() || data.train.classes < 2) return std::nullopt;
  constexpr std::int64_t last = 20;
  const std::int64_t batch = std::min<std::int64_t>(64, data.train.size()),
                     steps = std::clamp<std::int64_t>(data.train.size() / batch, 200, 1000);
  const DefaultsScope host({.dtype = DType::f32, .device = Device::cpu});
  const PrecisionScope exact(Precision::f32);
  const Normalization normalization = normalization_of(data.train);
  nn::Linear model({.in = data.train.image_bytes(), .out = data.train.classes, .init = nn::Init::constant(0)});
  nn::initialize(model, 0);
  nn::AdamW optimizer(model.parameters(), {.lr = nn::warmup_cosine(3e-4, 0, steps), .weight_decay = 0});
  const auto logits = [&](const Tensor& images) { return model(reshape(images, {images.dim(0), -1})); };
  BatchLoader loader(data.train, normalization, {.batch = batch, .seed = 0});
  double loss = 0;
  for (std::int64_t step = 0; step < steps; ++step) {
    const Batch b = to_tensors(loader.next(), data.train);
    const Gradients g = backward(cross_entropy(logits(b.images), b.labels));
    optimizer.step(g);
    if (step >= steps - last) loss += g.loss() / last;
  }
  const Evaluation e = evaluate(logits, data.validation, normalization);
  return LinearModel{.train_loss = loss, .val_loss = e.loss, .val_accuracy = e.accuracy};
}

LinearModel linear_model_of_glyphs() { return {.train_loss = 1.4037, .val_loss = 1.4355, .val_accuracy = 0.3865}; }

std::vector<Reference> references_of(const LinearModel& m) {
  const std::string name = "a linear model on the pixels";
  return {{.value = "train_loss", .level = m.train_loss, .name = name},
          {.value = "val_loss", .level = m.val_loss, .name = name},
          {.value = "val_accuracy", .level = m.val_accuracy, .name = name, .better = Better::higher}};
}

}  // namespace plumb::vision
