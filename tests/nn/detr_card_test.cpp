#include "nn/io/detr_card.h"

#include "nn/evaluation_scope.h"
#include "nn/io/pretrained.h"
#include "nn/io/weights.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::nn;
using namespace plumb::test;

namespace {

const DetrCard small_card{.options = {.classes = 2,
                                      .backbone = {4, 4},
                                      .dim = 8,
                                      .heads = 2,
                                      .encoder = 2,
                                      .decoder = 1,
                                      .hidden = 12,
                                      .queries = 3,
                                      .method = "layerscale:init=0.3",
                                      .seed = 5},
                          .mean = {0.1, 0.2, 0.3},
                          .std = {1, 2, 3},
                          .class_names = {"cat", "dog"},
                          .image_side = 48,
                          .largest_image = 48};

}  // namespace

TEST_CASE("a file with a card makes the same DETR again") {
  const TemporaryFolder folder;
  Detr model(small_card.options);
  const Tensor images = random_normal({2, 3, 20, 16}, 1, "images");
  (void)model(images);  // moves the statistics of batch norm
  const EvaluationScope evaluation(model);
  const NoGrad no_grad;
  const KeyMap names = GENERATE(KeyMap(), facebook_names());
  save_weights(model, folder / "w", names, metadata_of(small_card));
  const auto [card, loaded] = load_detr(folder / "w");
  CHECK(json_of(card) == json_of(small_card));
  CHECK(card.options.method->label() == small_card.options.method->label());
  CHECK(!loaded->training());
  CHECK((*loaded)(images).values() == model(images).values());
}

TEST_CASE("cards that do not fit their weights are refused") {
  const Detr model(small_card.options);
  const NamedTensors tensors = weights(model, facebook_names());
  const std::string good = json_of(small_card);
  const auto error = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    REQUIRE(text.find(from) != text.npos);
    text.replace(text.find(from), from.size(), to);
    return error_of([&] { (void)detr_card_of({.tensors = tensors, .metadata = {{"plumb", text}}}, "f"); });
  };
  CHECK(detr_card_of({.tensors = tensors, .metadata = {{"plumb", good}}}, "f").options.queries == 3);
  CHECK_THAT(error("\"queries\":3", "\"queries\":4"),
             contains("f: cannot be read as a Detr: expected \"query_embed.weight\" with 4 x 8 elements"));
  CHECK_THAT(error("\"encoder\":2", "\"encoder\":1048577"), contains("expected sizes from 1 to 1048576"));
  CHECK_THAT(error("\"backbone\":[4,4]", "\"backbone\":[]"), contains("expected 1 to 16 convolutions"));
  CHECK_THAT(error("\"backbone\":[4,4]", "\"backbone\":4"), contains("is not in Plumb's format"));
  CHECK_THAT(error("\"model\":\"detr\"", "\"model\":\"vit\""), contains("expected a model detr, got vit"));
  CHECK_THAT(error("\"model\":\"detr\"", "\"model\":\"detr\",\"new\":1"),
             contains("keys that this version does not know"));
  CHECK_THAT(error("[\"cat\",\"dog\"]", "[\"cat\"]"), contains("expected names of 2 classes, got 1"));
  CHECK_THAT(error("\"std\":[1.0,2.0,3.0]", "\"std\":[1.0,0.0,3.0]"), contains("standard deviations above 0"));
  CHECK_THAT(error("\"mean\":[0.1,0.2,0.3]", "\"mean\":[]"), contains("expected a mean and a standard deviation"));
  CHECK_THAT(error("layerscale", "layerscales"), contains("did you mean 'layerscale'"));
  CHECK_THAT(error_of([&] { (void)detr_card_of({.tensors = tensors, .metadata = {}}, "f"); }),
             contains("f: expected weights with Plumb's description of a Detr"));
  CHECK_THAT(
      error_of([&] { (void)detr_card_of({.tensors = tensors, .metadata = metadata_without_card("it is odd")}, "f"); }),
      contains("f: ") && contains("cannot describe: it is odd"));
  // The gate of rezero starts at 0, so that only moved weights show another norm.
  for (const char* gate : {"layerscale", "rezero"}) {
    DetrCard changed = small_card;
    changed.options.method = gate;
    CHECK_NOTHROW(metadata_of(changed));
    Method other = *changed.options.method;
    other.norm = Norm::post;
    changed.options.method = other;
    CHECK_THAT(error_of([&] { (void)metadata_of(changed); }), contains("register the method under a new name"));
  }
}
