// Tests of whole models with products in bf16: the difference from f32, the values that stay f32, and that observers
// change nothing.
#include <algorithm>
#include <cmath>
#include <optional>

#include "autograd/ops/linear_fusion.h"
#include "core/precision.h"
#include "core/profile.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;

namespace {

struct Model {
  DefaultsScope scope;  // decides where the parameters are made
  nn::ViT vit;
  Tensor images, labels;

  explicit Model(const nn::MethodChoice& gate, Defaults where = {}, std::int64_t depth = 3)
      : scope(where),
        vit([&] {
          return nn::ViTOptions{.image = 16,
                                .patch = 4,
                                .classes = 5,
                                .dim = 48,
                                .depth = depth,
                                .heads = 3,
                                .method = gate,
                                .drop_key = {.rate = 0.1},
                                .seed = 1};
        }()),
        images(random_normal({6, 3, 16, 16}, 0, "images", where)),
        labels(integers({0, 1, 2, 3, 4, 0}, {6}, where.device)) {}

  Gradients step() const {
    const RandomScope random({.seed = 1, .step = 0});
    return backward(cross_entropy(vit(images), labels));
  }
};

// Returns |a - b| / |b|, with all gradients as one vector.
double distance(const Gradients& a, const Gradients& b) {
  double difference = 0, norm = 0;
  for (const Gradients::Entry& e : b.entries()) {
    const std::vector<double> x = a[e.node->name].values(), y = e.gradient.values();
    for (std::size_t i = 0; i < x.size(); ++i) difference += (x[i] - y[i]) * (x[i] - y[i]), norm += y[i] * y[i];
  }
  return std::sqrt(difference / norm);
}

bool same_gradients(const Gradients& a, const Gradients& b) {
  if (a.loss() != b.loss()) return false;
  return std::ranges::all_of(
      b.entries(), [&](const Gradients::Entry& e) { return a[e.node->name].values() == e.gradient.values(); });
}

Gradients step_in(Precision precision, const Model& m) {
  const PrecisionScope scope(precision);
  return m.step();
}

}  // namespace

TEST_CASE("a model in bf16 is close to the same model in f32 for every kind of gate") {
  for (const char* gate :
       {"layerscale", "pre", "post", "rezero", "fixup", "sub_ln", "deepnorm", "value_residual", "residual_dual"}) {
    const Model m(gate);
    const Gradients f32 = step_in(Precision::f32, m), bf16 = step_in(Precision::bf16, m);
    INFO(gate);
    CHECK(bf16.loss() == Approx(f32.loss()).epsilon(2e-3));
    CHECK(distance(bf16, f32) < 3e-2);
    if (std::string(gate) != "rezero" && std::string(gate) != "fixup")
      CHECK(distance(bf16, f32) > 1e-5);  // the results in bf16 are rounded
  }
}

TEST_CASE("backends cpu and reference agree on a model in bf16") {
  const Model cpu("layerscale"), reference("layerscale", {DType::f32, Device::reference});
  const Gradients a = step_in(Precision::bf16, cpu), b = step_in(Precision::bf16, reference);
  CHECK(a.loss() == Approx(b.loss()).epsilon(1e-3));
  CHECK(distance(a, b) < 1.5e-2);
}

TEST_CASE("a trial in bf16 keeps the stream and the gradients and the logits in f32") {
  const PrecisionScope scope(Precision::bf16);
  Model m(nn::methods::layerscale(1e-6));
  std::vector<Handle> handles;
  int seen = 0;
  for (auto& block : m.vit.stack().blocks())
    handles.push_back(block.observe([&](const nn::JunctionPass& j) {
      ++seen;
      CHECK(j.before.x.dtype() == DType::f32);
      CHECK(j.branch_value.dtype() == DType::f32);
      CHECK(j.output.dtype() == DType::f32);
      CHECK(j.output.values() != j.before.x.values());  // a contribution of 1e-6 times the branch is not lost
    }));
  const Gradients g = m.step();
  CHECK(seen == 6);
  for (const Gradients::Entry& e : g.entries()) CHECK(e.gradient.dtype() == DType::f32);
  m.vit.eval();
  CHECK(m.vit(m.images).dtype() == DType::f32);
}

TEST_CASE("an MLP in bf16 has dropout, and a hook on its first layer changes the result by rounding only") {
  const PrecisionScope bf16(Precision::bf16);
  const RandomScope random({.seed = 1});
  nn::Mlp mlp({.dim = 8, .hidden = 32, .init = nn::Init::truncated_normal(0.5), .drop = 0.25});
  nn::initialize(mlp, 2);
  const Tensor x = random_normal({3, 5, 8}, 3, "x"), dropped = mlp(x);
  CHECK(dropped.dtype() == DType::f32);
  mlp.eval();
  const Tensor y = mlp(x);
  CHECK(relative_error(dropped, y) > 0.01);
  const Handle hook = mlp.first().on_forward([](const nn::Layer&, const Tensor&, const Tensor&) { return Tensor(); });
  CHECK(relative_error(mlp(x), y) < 1e-2);
}

TEST_CASE("observers and hooks change no bit of a model's gradients") {
  for (Precision precision : {Precision::f32, Precision::bf16}) {
    const PrecisionScope scope(precision);
    Model m("layerscale");
    const Gradients alone = m.step();
    std::vector<Handle> handles;
    for (auto& block : m.vit.stack().blocks()) {
      handles.push_back(block.observe([](const nn::JunctionPass&) {}));
      if (precision == Precision::bf16)
        continue;  // a hooked layer returns f32, so the derivative of GELU is not rounded
      handles.push_back(block.branch("attn").first().on_forward(
          [](const nn::Layer&, const Tensor&, const Tensor&) { return Tensor(); }));
      handles.push_back(block.branch("mlp").first().on_forward(
          [](const nn::Layer&, const Tensor&, const Tensor&) { return Tensor(); }));
    }
    INFO(enum_name(precision));
    CHECK(same_gradients(m.step(), alone));
  }
}

TEST_CASE("an observer changes neither the output of a block nor the number of calls of a hook on its last layer") {
  for (const char* gate : {"layerscale", "b2t"}) {
    Model m(gate);
    nn::Block& block = m.vit.stack().blocks()[0];
    const Tensor x = random_normal({2, 17, 48}, 0, "x");
    int calls = 0;
    const Handle hook = block.branch("mlp").last().on_forward([&](const nn::Layer&, const Tensor&, const Tensor& y) {
      ++calls;
      return y * 2;
    });
    const auto run = [&] {
      const RandomScope random({.seed = 1, .step = 0});
      return block(x).values();
    };
    const std::vector<double> alone = run();
    CHECK(calls == 1);
    std::vector<double> seen;
    const Handle observer = block.observe([&](const nn::JunctionPass& j) { seen = j.branch_value.values(); });
    INFO(gate);
    CHECK(run() == alone);
    CHECK(calls == 2);
    CHECK(seen.size() == alone.size());
  }
}

TEST_CASE("a checkpoint is computed again in the precision of its forward pass") {
  Model m("layerscale");
  const auto gradients = [&](bool outside) {
    std::optional<PrecisionScope> scope;
    scope.emplace(Precision::bf16);
    const RandomScope random({.seed = 1, .step = 0});
    const Tensor loss = cross_entropy(m.vit(m.images), m.labels);
    if (outside) scope.reset();
    return backward(loss);
  };
  m.vit.stack().checkpoint_blocks(true);
  CHECK(same_gradients(gradients(true), gradients(false)));
}

TEST_CASE("checkpointed blocks in bf16 give the same bits as blocks without checkpoints") {
  const PrecisionScope scope(Precision::bf16);
  Model m("layerscale");
  const Gradients plain = m.step();
  m.vit.stack().checkpoint_blocks(true);
  CHECK(same_gradients(m.step(), plain));
}

TEST_CASE("second derivatives exist in bf16 and are close to those of f32") {
  const auto second = [](Precision precision) {
    const PrecisionScope scope(precision);
    const Tensor x = variable(random_normal({2, 5, 12}, 0, "x")), w = variable(random_normal({36, 12}, 0, "w")),
                 o = variable(random_normal({12, 12}, 0, "o"));
    const Tensor heads = attention_qkv(linear(x, w * 0.3, {}, {.result = ResultDType::product}), 3);
    const Tensor y = sum(pow(linear(heads, o * 0.3, {}, {.sum = ResidualSum{x}}), 2));
    const Tensor g = grad(y, w, {.create_graph = true});
    return grad(sum(g * g), w).values();
  };
  const std::vector<double> a = second(Precision::bf16), b = second(Precision::f32);
  CHECK(test::relative_error(a, b) < 5e-2);
}

TEST_CASE("each block of a training step makes ten kernel calls: five forward and five backward") {
  const auto calls = [](std::int64_t depth, Precision precision) {
    const PrecisionScope scope(precision);
    const Model m("layerscale", {}, depth);
    m.step();
    const Profile profile;
    m.step();
    return profile.events().size();
  };
  for (Precision precision : {Precision::f32, Precision::bf16}) CHECK(calls(4, precision) - calls(3, precision) == 10);
}
