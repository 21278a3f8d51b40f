#include <algorithm>
#include <cmath>
#include <map>

#include "plumb/plumb.h"
#include "tests/support/built_in_gates.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

nn::ViTOptions small_vit(const std::string& gate = "layerscale") {
  return {.image = 16,
          .patch = 8,
          .channels = 3,
          .classes = 5,
          .dim = 16,
          .depth = 3,
          .heads = 2,
          .method = gate,
          .pool = nn::Pool::token};
}

Tensor images(std::int64_t batch = 2, Defaults where = defaults()) {
  return random_normal({batch, 3, 16, 16}, 7, "images", where);
}

std::vector<std::string> names_of(const nn::Module& m) {
  std::vector<std::string> names;
  for (const nn::Parameter& p : m.parameters()) names.push_back(p.name);
  return names;
}

}  // namespace

TEST_CASE("parameters have timm's names, in the order of registration") {
  nn::ViTOptions o = small_vit();
  o.depth = 1;
  CHECK(names_of(nn::ViT(o)) == std::vector<std::string>{"cls_token",
                                                         "pos_embed",
                                                         "patch_embed.proj.weight",
                                                         "patch_embed.proj.bias",
                                                         "blocks.0.norm1.weight",
                                                         "blocks.0.norm1.bias",
                                                         "blocks.0.norm2.weight",
                                                         "blocks.0.norm2.bias",
                                                         "blocks.0.attn.qkv.weight",
                                                         "blocks.0.attn.qkv.bias",
                                                         "blocks.0.attn.proj.weight",
                                                         "blocks.0.attn.proj.bias",
                                                         "blocks.0.mlp.fc1.weight",
                                                         "blocks.0.mlp.fc1.bias",
                                                         "blocks.0.mlp.fc2.weight",
                                                         "blocks.0.mlp.fc2.bias",
                                                         "blocks.0.gate1.gamma",
                                                         "blocks.0.gate2.gamma",
                                                         "norm.weight",
                                                         "norm.bias",
                                                         "head.weight",
                                                         "head.bias"});
}

TEST_CASE("a name that is taken or has dots and a second parent are rejected") {
  struct Bad : nn::Module {
    Bad() : Module("Bad") { parameter("w", {2}, nn::Init::constant(0), Role::weight); }
    void again() { parameter("w", {2}, nn::Init::constant(0), Role::weight); }
    void dotted() { parameter("a.b", {2}, nn::Init::constant(0), Role::weight); }
  };
  Bad bad;
  CHECK_THAT(error_of([&] { bad.again(); }), contains("expected a new name in Bad, got \"w\""));
  CHECK_THAT(error_of([&] { bad.dotted(); }), contains("without dots"));
  CHECK(error_of([&] { nn::Child<nn::LayerNorm>(&bad, "a.b", 4); }) ==
        "[module] expected a child name without dots, got \"a.b\"");
  CHECK_THAT(
      error_of([&] { nn::ChildPtr<nn::Layer>(&bad, "d", std::make_unique<nn::Child<nn::LayerNorm>>(&bad, "c", 4)); }),
      contains("expected a module without a parent for Bad.d, got Bad.c"));
}

TEST_CASE("an error inside a model names the module, the phase and both shapes") {
  nn::ViT model(small_vit());
  const Handle wrong =
      model.blocks()[1].branch("attn").on_input([](const nn::Layer&, const Tensor& x) { return slice(x, 2, 0, 8); });
  const RandomScope random({.seed = 0, .step = 4});
  CHECK(error_of([&] { model(images()); }) ==
        "[linear] expected input [.., 16] for weight [48, 16], got [2, 5, 8]\n       in ViT.blocks.1.attn.qkv, "
        "forward, step 4");
  CHECK_THAT(error_of([&] {
               model(zeros({2, 1, 16, 16}));
             }),
             contains("[patch_embed] expected images [B, 3, 16, 16], got [2, 1, 16, 16]"));
  CHECK(current_place().empty());  // the scopes are closed
}

TEST_CASE("initial values depend only on seed and name: initialising again changes nothing") {
  nn::ViT a(small_vit("layerscale")), b(small_vit("rezero"));
  const auto values = [](nn::Module& m) {
    std::map<std::string, std::vector<double>> all;
    for (const nn::Parameter& p : m.parameters()) all[p.name] = p.value.values();
    return all;
  };
  const auto of_a = values(a), of_b = values(b);
  std::size_t shared = 0;
  for (const auto& [name, v] : of_a)
    if (of_b.contains(name)) {
      CHECK(of_b.at(name) == v);
      ++shared;
    }
  CHECK(shared >= 30);  // trunk and branch weights are the same for both methods, so trials can be paired
  nn::initialize(a, 0);
  CHECK(values(a) == of_a);
  nn::initialize(a, 1);
  CHECK(values(a) != of_a);
}

TEST_CASE("initial values have the declared distribution") {
  const auto draw = [](const nn::Init& init, const Shape& shape) {
    const Array a(shape, DType::f64, Device::reference);
    init.fill(a, 3, "weight");
    return to_vector(a);
  };
  const auto moment = [](const std::vector<double>& v, int power) {
    double sum = 0;
    for (double x : v) sum += std::pow(x, power);
    return sum / static_cast<double>(v.size());
  };
  const auto normal = draw(nn::Init::truncated_normal(0.02), {200, 500});
  CHECK(std::abs(moment(normal, 1)) < 3e-4);
  CHECK(moment(normal, 2) == Approx(4e-4).epsilon(0.02));
  CHECK(moment(normal, 4) / std::pow(moment(normal, 2), 2) == Approx(3).epsilon(0.05));
  const auto cut = draw(nn::Init::truncated_normal(1), {200, 500});
  CHECK(*std::max_element(cut.begin(), cut.end()) <= 2);
  CHECK(*std::max_element(cut.begin(), cut.end()) > 1.99);
  const auto xavier = draw(nn::Init::xavier_uniform(), {300, 100});
  CHECK(*std::max_element(xavier.begin(), xavier.end()) == Approx(std::sqrt(6.0 / 400)).epsilon(0.001));
  CHECK(moment(xavier, 2) == Approx(2.0 / 400).epsilon(0.03));
  const auto packed = draw(nn::Init::xavier_uniform(3), {300, 100});
  CHECK(*std::max_element(packed.begin(), packed.end()) == Approx(std::sqrt(6.0 / 200)).epsilon(0.001));
  const auto fan_in = draw(nn::Init::fan_in_uniform(), {300, 100});
  CHECK(*std::max_element(fan_in.begin(), fan_in.end()) == Approx(0.1).epsilon(0.001));
  CHECK(moment(fan_in, 2) == Approx(1.0 / 300).epsilon(0.03));
  const auto glorot = draw(nn::Init::xavier_normal(2), {300, 100});
  CHECK(moment(glorot, 2) == Approx(4 * 2.0 / 400).epsilon(0.03));
  CHECK(moment(glorot, 4) / std::pow(moment(glorot, 2), 2) == Approx(3).epsilon(0.05));
  const auto flat = draw(nn::Init::uniform(0.5), {300, 100});
  CHECK(*std::max_element(flat.begin(), flat.end()) == Approx(0.5).epsilon(0.001));
  CHECK(moment(flat, 2) == Approx(0.25 / 3).epsilon(0.03));
  CHECK(nn::Init::xavier_normal(2).description() == "xavier_normal * 2");
  CHECK(nn::Init::uniform(0.5).description() == "uniform(0.5)");
  CHECK_THAT(error_of([] { nn::Init::xavier_normal(0); }),
             contains("[init] expected a gain above 0 and at least one part, got 0 and 1"));
  CHECK_THAT(error_of([] { nn::Init::uniform(-1); }), contains("[init] expected a finite bound above 0, got -1"));
  CHECK(draw(nn::Init::truncated_normal(0.02).scaled(0.5), {4, 4})[5] ==
        0.5 * draw(nn::Init::truncated_normal(0.02), {4, 4})[5]);
  CHECK(nn::Init::truncated_normal(0.02).scaled(0.5).description() == "truncated_normal(0.02) * 0.5");
}

TEST_CASE("hooks see input, output and gradient of a layer, may replace them and are removed with their handle") {
  nn::ViT model(small_vit());
  std::vector<std::string> events;
  {
    nn::Block& block = model.blocks()[0];
    const Handle before = block.on_input([&](const nn::Layer& l, const Tensor& x) {
      events.push_back("input " + *l.path() + " " + to_string(x.shape()));
      return Tensor();
    });
    const Handle after = block.on_forward([&](const nn::Layer&, const Tensor& x, const Tensor& y) {
      events.push_back("output " + to_string(y.shape()));
      return x;  // replaces the block by the identity
    });
    const Handle gradient = model.on_backward([&](const nn::Layer& l, const Tensor& g) {
      events.push_back("gradient " + *l.path() + " " + to_string(g.shape()));
    });
    const Gradients g = backward(sum(model(images())));
    CHECK(events ==
          std::vector<std::string>{"input ViT.blocks.0 [2, 5, 16]", "output [2, 5, 16]", "gradient ViT [2, 5]"});
    CHECK_THAT(error_of([&] { g["blocks.0.gate1.gamma"]; }), contains("expected the name of a parameter"));
    CHECK_NOTHROW(g["blocks.1.gate1.gamma"]);
  }
  events.clear();
  (void)backward(sum(model(images())));
  CHECK(events.empty());
}

TEST_CASE("a layer that returns its input reports its own gradient, not that of its input") {
  const nn::Dropout nothing(0);
  const Tensor x = variable(ones({1}));
  double seen = 0;
  const Handle watch = nothing.on_backward([&](const nn::Layer&, const Tensor& g) { seen = g.item(); });
  CHECK(grad(x * 5.0 + nothing(x), x).item() == 6);
  CHECK(seen == 1);
}

TEST_CASE("observers see each junction once, with and without checkpoints") {
  nn::ViT model(small_vit());
  for (const bool checkpointed : {false, true}) {
    model.checkpoint_blocks(checkpointed);
    int junctions = 0;
    std::vector<Handle> watch;
    for (auto& block : model.blocks()) watch.push_back(block.observe([&](const nn::JunctionPass&) { ++junctions; }));
    (void)backward(sum(model(images())));
    CHECK(junctions == 6);
  }
}

TEST_CASE("a hooked linear layer is called even if its parent would fuse it") {
  nn::ViT model(small_vit());
  int calls = 0;
  const Tensor plain = model(images());
  const Handle watch =
      model.blocks()[1].branch("mlp").first().on_forward([&](const nn::Layer&, const Tensor&, const Tensor&) {
        ++calls;
        return Tensor();
      });
  CHECK(relative_error(model(images()), plain) < 1e-5);
  CHECK(calls == 1);
}

TEST_CASE("the parameters of a child without a name appear as those of its parent") {
  struct Leaf : nn::Module {
    explicit Leaf(const std::string& name) { parameter(name, {1}, nn::Init::constant(1), Role::gate); }
    void late() { parameter("late", {1}, nn::Init::constant(1), Role::gate); }
  };
  struct Inner : nn::Module {
    nn::Child<Leaf> a{this, "", "a"}, b{this, "part", "b"};
  };
  struct Root : nn::Module {
    nn::Child<Inner> inner{this, ""};
    void own_parameter(const std::string& name) { parameter(name, {1}, nn::Init::constant(1), Role::gate); }
  };
  struct WithPart : nn::Module {
    nn::Child<nn::Dropout> part{this, "part", 0.1};  // has no parameters; random draws get their key from its path
  };
  Root root;
  std::vector<std::string> names;
  for (const nn::Parameter& p : root.parameters()) names.push_back(p.name);
  CHECK(names == std::vector<std::string>{"a", "part.b"});
  CHECK(*root.inner.a.path() == "Root");
  CHECK(*root.inner.b.path() == "Root.part");
  CHECK_THAT(error_of([&] { nn::Child<Leaf>(&root, "", "a"); }), contains("expected a new name in Root, got \"a\""));
  CHECK_THAT(error_of([&] { root.own_parameter("a"); }), contains("expected a new name in Root, got \"a\""));
  CHECK_THAT(error_of([&] { nn::Child<WithPart>(&root, ""); }), contains("expected a new name in Root, got \"part\""));
  CHECK_THAT(error_of([&] { root.inner.a.late(); }),
             contains("expected a child without a name to be complete when it is registered"));
}

TEST_CASE("sizes of models that overflow, or that no memory holds, are errors") {
  constexpr std::int64_t big = std::numeric_limits<std::int64_t>::max();
  const auto vit = [](std::int64_t image, std::int64_t patch, std::int64_t dim = 64) {
    return error_of([&] { nn::ViT({.image = image, .patch = patch, .dim = dim}); });
  };
  const std::string product = "[patch_embed] expected extents of at least 0 whose product is at most 2^59, got ";
  CHECK_THAT(vit(1LL << 33, 1), contains(product + "8589934592 x 8589934592"));
  CHECK_THAT(vit(big, 1), contains(product));
  CHECK_THAT(vit(big, big), contains(product + "3 x 9223372036854775807 x 9223372036854775807"));
  CHECK_THAT(vit(1LL << 20, 1), contains("out of memory on the host: asked for "));
  CHECK_THAT(vit(8, 8, big), contains("] expected "));
  for (const auto& [image, patch] : {std::pair(0, 8), {-8, 8}, {8, 0}, {8, -8}, {9, 8}})
    CHECK_THAT(vit(image, patch),
               contains("[patch_embed] expected an image size that is a multiple of the patch, got"));
  CHECK_THAT(error_of([&] { nn::CaiT({.image = 1LL << 33, .patch = 1}); }), contains(product));
  CHECK_THAT(error_of([&] { nn::Attention({.dim = big, .heads = 1}); }),
             contains("[attention] expected extents of at least 0 whose product is at most 2^59, got 3 x "));
  CHECK(nn::Attention({.dim = 4, .heads = 2, .grid = {1LL << 33, 1LL << 33}}).options().dim == 4);
  CHECK_THAT(error_of([&] { (void)nn::sine_positions(1LL << 33, 1LL << 33, 4); }),
             contains("[sine_positions] expected extents"));
}

TEST_CASE("every gradient of a small model agrees with finite differences in f64") {
  const DefaultsScope f64(reference_f64);
  const RandomScope random({.seed = 1, .step = 0});
  for (const std::string& gate : built_in_gates) {
    INFO(gate);
    nn::ViTOptions o = small_vit(gate);
    o.depth = 1;
    o.dim = 4;
    o.drop_key.rate = 0.3;
    o.drop_path.rate = 0.3;
    nn::ViT model(o);
    const Tensor x = images(2);
    Tensors parameters;
    for (const nn::Parameter& p :
         model.parameters()) {  // moves parameters away from 0 and 1, so that no 0 and no 1 hides a term
      copy_into((p.value.detach() + 0.3 * random_normal(p.value.shape(), 9, p.name)).array(), p.value.array());
      parameters.push_back(p.value);
    }
    const auto loss = [&] { return cross_entropy(model(x), integers({1, 3}, {2})); };
    const Gradients g = backward(loss());
    for (const nn::Parameter& p : model.parameters()) {
      const Tensor direction = random_normal(p.value.shape(), 4, p.name);
      const double analytic = sum(g[p.name] * direction).item(), h = 1e-6;
      const Tensor at = Tensor(full_like(p.value.array(), p.value.shape(), 0)) + p.value.detach();
      const auto moved = [&](double t) {
        copy_into((at + t * direction).array(), p.value.array());
        return loss().item();
      };
      const double numeric = (moved(h) - moved(-h)) / (2 * h);
      copy_into(at.array(), p.value.array());
      INFO(p.name);
      CHECK(analytic == Approx(numeric).margin(1e-7).epsilon(1e-5));
    }
  }
}
