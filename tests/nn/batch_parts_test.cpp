// The gradients of a batch in parts, with drops: the loop that the documentation shows, and second passes of one batch.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/device.h"
#include "plumb/plumb.h"
#include "tests/nn/shake.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/paths.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using BatchParts = std::vector<std::pair<Tensor, Tensor>>;

struct GradientsOfStep {  // takes the place of an optimizer
  Gradients gradients;
  void step(Gradients g) { gradients = std::move(g); }
};

// Runs the statements and then `end`, and returns the text of the statements.
#define TEXT_OF(end, ...) \
  __VA_ARGS__             \
  end;                    \
  return #__VA_ARGS__;

// Code that the documentation shows with the same text, except for line breaks and indentation: the loop over the parts
// of a batch, and two passes of a batch with different drops.
// clang-format off
std::string loop_over_parts(const nn::Layer& model, const BatchParts& parts, std::uint64_t seed, std::uint32_t step,
                            GradientsOfStep& optimizer) {
  TEXT_OF(,
    Gradients g;
    std::uint32_t first = 0;
    for (const auto& [images, labels] : parts) {
      const auto size = static_cast<std::uint32_t>(images.dim(0));
      const RandomScope random({.seed = seed, .step = step, .first_sample = first});
      g += size * backward(cross_entropy(model(images), labels));
      first += size;
    }
    optimizer.step(g / first);
  )
}

std::string two_passes(const nn::Layer& model, const Tensor& images, std::uint64_t seed, std::uint32_t step,
                       std::uint32_t batch, Tensors& passes) {
  TEXT_OF(passes = Tensors({a, b}),
    const Tensor a = model(images);
    const RandomScope second({.seed = seed, .step = step, .first_sample = batch});
    const Tensor b = model(images);
  )
}
// clang-format on

BatchParts parts_of(const Tensor& images, const Tensor& labels, const std::vector<std::int64_t>& sizes) {
  BatchParts parts;
  std::int64_t first = 0;
  for (const std::int64_t size : sizes) {
    parts.emplace_back(slice(images, 0, first, first + size), slice(labels, 0, first, first + size));
    first += size;
  }
  REQUIRE(first == images.dim(0));
  return parts;
}

// The largest difference of two gradients, relative to the size of the gradient of a variable. A size counts as at
// least 1 % of the largest one, because some gradients are 0 up to rounding.
double largest_difference(const Gradients& a, const Gradients& b) {
  REQUIRE(a.entries().size() == b.entries().size());
  std::vector<double> distances, sizes;
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    const Tensor &x = a.entries()[i].gradient, &y = b.entries()[i].gradient;
    distances.push_back(max(abs(x - y)).item());
    sizes.push_back(max(abs(y)).item());
  }
  double most = std::abs(a.loss() - b.loss());
  const double least = std::ranges::max(sizes) / 100;
  for (std::size_t i = 0; i < sizes.size(); ++i) most = std::max(most, distances[i] / std::max(sizes[i], least));
  return most;
}

// Compares 8 parts, of equal and of different sizes, with the whole batch of 24 samples. `drops` says whether the model
// drops anything.
void check_parts(const nn::Layer& model, const Shape& sample, double limit, bool drops = true) {
  shake_trained(model);
  const Tensor images = random_normal(sample.with(0, 24), 0, "images");
  std::vector<std::int64_t> classes(24);
  for (std::size_t i = 0; i < 24; ++i) classes[i] = static_cast<std::int64_t>(i * 7 % 5);
  const Tensor labels = integers(classes, {24}, images.device());
  const auto whole_at = [&](const RandomState& state) {
    const RandomScope random(state);
    return backward(cross_entropy(model(images), labels));
  };
  const Gradients whole = whole_at({.seed = 5, .step = 3});
  for (const std::vector<std::int64_t>& sizes :
       {std::vector<std::int64_t>{3, 3, 3, 3, 3, 3, 3, 3}, {1, 2, 7, 1, 5, 3, 1, 4}, {24}}) {
    INFO(fmt::format("parts of {}", fmt::join(sizes, ", ")));
    GradientsOfStep step;
    loop_over_parts(model, parts_of(images, labels, sizes), 5, 3, step);
    CHECK(largest_difference(step.gradients, whole) < limit);
  }
  // The comparison can fail: another step, and parts that all begin at sample 0, give other gradients.
  const bool equal = largest_difference(whole_at({.seed = 5, .step = 4}), whole) < limit;
  CHECK(equal != drops);
  Gradients same_draws;
  for (const auto& [x, y] : parts_of(images, labels, {12, 12})) {
    const RandomScope random({.seed = 5, .step = 3});
    same_draws += backward(cross_entropy(model(x), y)) * 0.5;
  }
  CHECK((largest_difference(same_draws, whole) < limit) != drops);
}

struct DropsOfViT {
  const char* name;
  nn::ViTOptions options;
};

nn::ViTOptions small_vit(nn::ViTOptions o, const std::string& gate = "pre") {
  o.image = 20, o.patch = 4, o.channels = 1, o.classes = 5, o.dim = 12, o.depth = 2, o.heads = 2, o.seed = 1;
  o.method = gate;
  return o;
}

// A network with dropout before the pooling: 3 * 5 elements a sample, so that a sample begins inside a block of draws.
struct OddDropout : nn::Layer {
  nn::Child<nn::Linear> fc1{this, "fc1", {.in = 4, .out = 5}}, fc2{this, "fc2", {.in = 5, .out = 5}};
  nn::Child<nn::Dropout> dropout{this, "dropout", 0.3};
  Tensor forward(const Tensor& x) const override { return mean(fc2(dropout(tanh(fc1(x)))), 1); }
};

// Attention to a memory, dropout in the branches, and stochastic depth of the original form.
struct Reader : nn::Layer {
  nn::Child<nn::Stack> stack{
      this,
      "stack",
      {.dim = 12,
       .depth = 2,
       .method = "pre",
       .junctions = {nn::self_attention({.heads = 2, .dropout = 0.2, .proj_drop = 0.2, .causal = true}),
                     nn::cross_attention({.heads = 2, .drop_key = {.rate = 0.3}, .dropout = 0.1}),
                     nn::mlp({.hidden = 20, .drop = 0.3})},
       .drop_path = {.rate = 0.4, .form = nn::DropPathForm::original}}};
  nn::Child<nn::Linear> head{this, "head", {.in = 12, .out = 5}};
  Tensor forward(const Tensor& x) const override { return head(mean(stack(x, {.memory = {.x = flip(x, 1)}}), 1)); }
};

// Replaces each run of white space, and the start of a comment line, by one blank.
std::string as_one_line(const std::string& text) {
  std::istringstream in(text);
  std::string line;
  for (std::string word; in >> word;)
    if (word != "//") line += (line.empty() ? "" : " ") + word;
  return line;
}

std::string text_of_page(const char* name) {
  std::ifstream in(std::filesystem::path(source_dir()) / name);
  std::stringstream text;
  text << in.rdbuf();
  return as_one_line(text.str());
}

}  // namespace

TEST_CASE("8 parts of a batch give the gradients of the whole batch with all drops on", "[long]") {
  using enum DropShape;
  using enum DropSharing;
  const std::vector<DropsOfViT> all{
      {"drop path", {.drop_path = {.rate = 0.4}}},
      {"drop path of the original form", {.drop_path = {.rate = 0.4, .form = nn::DropPathForm::original}}},
      {"DropKey", {.drop_key = {.rate = 0.3}}},
      {"DropKey by share", {.drop_key = {.rate = 0.3, .shape = block, .match = nn::DropMatch::share}}},
      {"DropKey of blocks for all heads", {.drop_key = {.rate = 0.1, .shape = block, .sharing = heads}}},
      {"DropKey of crosses for all queries", {.drop_key = {.rate = 0.1, .shape = cross, .sharing = column}}},
      {"DropKey of single keys for all queries", {.drop_key = {.rate = 0.3, .sharing = column}}},
      {"attention dropout", {.attention_dropout = 0.3}},
      {"DropHead", {.drop_head = {.rate = 0.5}}},
      {"DropHead with a schedule", {.drop_head = {.rate = 0.5, .steps = 21}}},
      {"all",
       {.drop_key = {.rate = 0.2, .sharing = heads},
        .attention_dropout = 0.2,
        .drop_head = {.rate = 0.3},
        .drop_path = {.rate = 0.3}}}};
  std::vector<std::pair<Defaults, double>> devices{{reference_f64, 1e-10}, {cpu_f32, 1e-4}};
  if (why_no_cuda().empty()) devices.emplace_back(cuda_f32, 1e-4);
  for (const auto& [where, limit] : devices) {
    const DefaultsScope scope(where);
    for (const DropsOfViT& drops : all) {
      INFO(drops.name);
      nn::ViT model(small_vit(drops.options));
      check_parts(model, {1, 1, 20, 20}, limit);
      model.checkpoint_blocks(true);
      check_parts(model, {1, 1, 20, 20}, limit);
    }
    nn::CaiT cait({.image = 20,
                   .patch = 4,
                   .channels = 1,
                   .classes = 5,
                   .dim = 12,
                   .depth = 1,
                   .heads = 2,
                   .init = 0.5,
                   .drop_key = {.rate = 0.2},
                   .attention_dropout = 0.2,
                   .drop_head = {.rate = 0.3},
                   .drop_path = {.rate = 0.3},
                   .seed = 1});
    check_parts(cait, {1, 1, 20, 20}, limit);
    OddDropout odd;
    nn::initialize(odd, 1);
    check_parts(odd, {1, 3, 4}, limit);
    Reader reader;
    nn::initialize(reader, 1);
    check_parts(reader, {1, 4, 12}, limit);
  }
}

TEST_CASE("8 parts of a batch give the gradients of the whole batch with every residual method", "[long]") {
  for (const std::string& name : nn::method_names()) {
    INFO(name);
    nn::ViT model(small_vit({.attention_dropout = 0.2, .drop_path = {.rate = 0.4}}, name));
    check_parts(model, {1, 1, 20, 20}, 1e-3);
  }
}

TEST_CASE("a second pass of a batch gets other draws with .first_sample = batch and the same draws without") {
  nn::ViT model(small_vit(
      {.drop_key = {.rate = 0.2}, .attention_dropout = 0.2, .drop_head = {.rate = 0.3}, .drop_path = {.rate = 0.3}}));
  shake_trained(model);
  const Tensor images = random_normal({6, 1, 20, 20}, 0, "images");
  const RandomScope random({.seed = 2, .step = 7});
  const std::vector<double> first = model(images).values();
  CHECK(model(images).values() == first);
  const std::vector<double> both = model(concat({images, images}, 0)).values();
  Tensors passes;
  const std::string code = two_passes(model, images, 2, 7, 6, passes);
  CHECK_THAT(text_of_page("docs/tutorial/model_loop_optimizer.md"), contains(as_one_line(code)));
  const std::vector<double> second = passes[1].values();
  CHECK(passes[0].values() == first);
  CHECK(relative_error(second, first) > 0.1);
  std::vector<double> joined = first;
  joined.insert(joined.end(), second.begin(), second.end());
  CHECK(relative_error(joined, both) < 1e-5);
}

TEST_CASE("the header of backward() and the pages show the loop over the parts of a batch that the tests run") {
  GradientsOfStep unused;
  OddDropout model;
  nn::initialize(model, 1);
  const Tensor x = random_normal({2, 3, 4}, 0, "x");
  const std::string loop = as_one_line(loop_over_parts(model, {{x, integers({0, 1})}}, 0, 0, unused));
  for (const char* page : {"autograd/backward.h", "docs/tutorial/model_loop_optimizer.md", "docs/own_experiment.md"}) {
    INFO(page);
    CHECK_THAT(text_of_page(page), contains(loop));
  }
}
