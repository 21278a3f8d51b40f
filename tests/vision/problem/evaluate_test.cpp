// Tests of evaluate() with models and functions that map images to logits.

#include <cmath>

#include "experiments/vision/problem/evaluate.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Five images of one pixel, in 3 classes.
vision::ImageSet five_pixels() {
  vision::ImageSet set;
  set.channels = set.height = set.width = 1;
  set.classes = 3;
  set.pixels = {0, 255, 0, 255, 0};
  set.labels = {0, 1, 2, 1, 0};
  return set;
}
const vision::Normalization as_it_is{.mean = {0}, .std = {1}};

// Predicts class 0 for black pixels and class 1 for white pixels. In training mode, predicts class 2 for all pixels.
struct Threshold : nn::Layer {
  Threshold() : Layer("Threshold") {}
  Tensor forward(const Tensor& images) const override {
    const Tensor white = reshape(images, {-1, 1}), one = ones_like(white);
    return training() ? concat({one * 0, one * 0, one}, 1) : concat({1 - white, white, one * 0}, 1);
  }
};

}  // namespace

TEST_CASE("a layer is evaluated in evaluation mode and then trains again") {
  Threshold model;
  CHECK(vision::evaluate(model, five_pixels(), as_it_is, 2).accuracy == 0.8);
  CHECK(model.training());
}

TEST_CASE("any function from images to logits is evaluated without changes") {
  Threshold model;
  CHECK(vision::evaluate([&](const Tensor& images) { return model(images); }, five_pixels(), as_it_is).accuracy ==
        0.2);  // the model is still in training mode
  const Tensor weight = variable(tensor({-1, 1, 0}, {3, 1}));
  bool recorded = false;
  const auto linear_model = [&](const Tensor& images) {
    const Tensor logits = linear(reshape(images, {-1, 1}), weight, tensor({0.5, 0, 0}, {3}));
    recorded |= logits.requires_grad();
    return logits;
  };
  const vision::Evaluation evaluation = vision::evaluate(linear_model, five_pixels(), as_it_is, 3);
  CHECK(evaluation.accuracy == 0.8);
  CHECK_FALSE(recorded);
  // The logits are (0.5, 0, 0) for black pixels and (-0.5, 1, 0) for white pixels.
  const double black = std::log(std::exp(0.5) + 2), white = std::log(std::exp(-0.5) + std::exp(1.0) + 1);
  CHECK(evaluation.loss == Approx((2 * (black - 0.5) + black + 2 * (white - 1)) / 5).epsilon(1e-6));
}
