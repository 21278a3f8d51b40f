#include "experiments/vision/pictures/mask_images.h"

#include "core/scope.h"
#include "nn/io/weights.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using nn::Schedule;

namespace {

// The tokens are a class token and 4 x 4 patches, and each token is a unit vector. Queries and keys are 0, and the
// values are the tokens. The output of the attention for a query is therefore the vector of its attention weights.
constexpr std::int64_t side = 4, tokens = side * side + 1;

std::unique_ptr<nn::Stack> stack_of(DropShape shape, Schedule schedule) {
  auto stack = std::make_unique<nn::Stack>(
      nn::StackOptions{.dim = tokens,
                       .depth = 3,
                       .method = "pre",
                       .junctions = nn::transformer_block({.heads = 1,
                                                           .drop_key = {.rate = 0.4,
                                                                        .schedule = schedule,
                                                                        .empty = EmptyRow::zero,
                                                                        .shape = shape,
                                                                        .match = nn::DropMatch::share},
                                                           .grid = {side, side}},
                                                          {.hidden = 4})});
  nn::initialize(*stack, 0);
  std::vector<double> eye(tokens * tokens, 0), packed(2 * tokens * tokens, 0);
  for (std::int64_t i = 0; i < tokens; ++i) eye[static_cast<std::size_t>(i * tokens + i)] = 1;
  packed.insert(packed.end(), eye.begin(), eye.end());
  nn::NamedTensors weights;
  for (int block = 0; block < 3; ++block) {
    weights[fmt::format("blocks.{}.attn.qkv.weight", block)] = tensor(packed, {3 * tokens, tokens});
    weights[fmt::format("blocks.{}.attn.proj.weight", block)] = tensor(eye, {tokens, tokens});
  }
  nn::assign(nn::weights(*stack), weights, "[test]", {.allow_missing = true});
  return stack;
}

}  // namespace

TEST_CASE("pictures of masks show the keys that attention drops in the first step") {
  const Tensor unit = [] {
    std::vector<double> eye(tokens * tokens, 0);
    for (std::int64_t i = 0; i < tokens; ++i) eye[static_cast<std::size_t>(i * tokens + i)] = 1;
    return tensor(eye, {1, tokens, tokens});
  }();
  int dropped = 0;
  for (const DropShape shape : {DropShape::plain, DropShape::block, DropShape::cross})
    for (const Schedule schedule : {Schedule::constant, Schedule::increasing}) {
      const std::unique_ptr<nn::Stack> stack = stack_of(shape, schedule);
      const std::optional<vision::Pixels> picture = vision::masks_picture(*stack, 5, tokens);
      REQUIRE(picture);
      const std::int64_t pitch = side * 8 + 1 + vision::mask_gap;
      REQUIRE(picture->height == 3 * pitch - vision::mask_gap);
      const RandomScope random({.seed = 5, .step = 0});
      for (std::int64_t block = 0; block < 3; ++block) {
        nn::Branch& attention = stack->blocks()[static_cast<std::size_t>(block)].branch("attn");
        const std::vector<double> weighs = attention(unit).values();
        for (std::int64_t row = 0; row < 4; ++row)
          for (std::int64_t patch = 0; patch < side * side; ++patch) {
            const bool lost = weighs[static_cast<std::size_t>(row * tokens / 4 * tokens + 1 + patch)] == 0;
            const std::int64_t y = block * pitch + patch / side * 8 + 4, x = row * pitch + patch % side * 8 + 4;
            CHECK((picture->plane(1)[y * picture->width + x] < 100) == lost);
            dropped += lost;
          }
      }
    }
  CHECK(dropped > 100);
  CHECK_FALSE(vision::masks_picture(
      nn::Stack({.dim = 8,
                 .depth = 1,
                 .method = "pre",
                 .junctions = nn::transformer_block({.heads = 2, .grid = {2, 2}}, {.hidden = 8})}),
      5, 4));
}
