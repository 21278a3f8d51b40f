// Mistakes with evaluation.
#include "experiments/vision/problem/evaluate.h"
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;

namespace {

vision::ImageSet two_pixels() {
  vision::ImageSet set;
  set.channels = set.height = set.width = 1;
  set.classes = 3;
  set.pixels = {0, 255};
  set.labels = {0, 2};
  return set;
}
const vision::Normalization as_it_is{.mean = {0}, .std = {1}};
const auto zero_logits = [](const Tensor& images) { return zeros({images.dim(0), 3}); };

}  // namespace

TEST_CASE("misuse: evaluation of an empty set") {
  vision::ImageSet none = two_pixels();
  none.pixels.clear(), none.labels.clear();
  CHECK_REFUSED(vision::evaluate(zero_logits, none, as_it_is).loss,
                "[evaluate] expected at least one image, got an empty set");
}
TEST_CASE("misuse: evaluation in empty batches") {
  CHECK_REFUSED(vision::evaluate(zero_logits, two_pixels(), as_it_is, 0).loss,
                "[evaluate] expected a batch of at least 1, got 0");
  CHECK_REFUSED(vision::evaluate(zero_logits, two_pixels(), as_it_is, -8).loss,
                "[evaluate] expected a batch of at least 1, got -8");
}
TEST_CASE("misuse: evaluation of a model with another number of classes") {
  const auto five = [](const Tensor& images) { return zeros({images.dim(0), 5}); };
  CHECK_REFUSED(vision::evaluate(five, two_pixels(), as_it_is).loss,
                "[evaluate] expected logits [2, 3] for images [2, 1, 1, 1], got [2, 5]");
}
TEST_CASE("misuse: evaluation of a model that returns images or nothing") {
  nn::Conv2d layer({.in = 1, .out = 3, .kernel = 1});
  nn::initialize(layer, 0);
  CHECK_REFUSED(vision::evaluate(layer, two_pixels(), as_it_is).loss,
                "[evaluate] expected logits [2, 3] for images [2, 1, 1, 1], got [2, 3, 1, 1]");
  CHECK_REFUSED(vision::evaluate([](const Tensor&) { return Tensor(); }, two_pixels(), as_it_is).loss,
                "got an undefined tensor");
}
TEST_CASE("misuse: evaluation of an empty function") {
  CHECK_REFUSED(vision::evaluate(std::function<Tensor(const Tensor&)>(), two_pixels(), as_it_is).loss,
                "[evaluate] expected a function from images");
}
TEST_CASE("misuse: a normalization of another number of channels") {
  CHECK_REFUSED(vision::evaluate(zero_logits, two_pixels(), {.mean = {0, 0, 0}, .std = {1, 1, 1}}).loss, "channel");
}
