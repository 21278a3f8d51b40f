#include <algorithm>
#include <cmath>

#include "autograd/node.h"
#include "nn/nn.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Two parameters of different roles, with gradients fed by a linear loss <p, g>.
struct Pair : nn::Module {
  Pair() : Module("Pair") {}
  Tensor weight = parameter("weight", tensor({1, -2, 3}, {3}), Role::weight), gamma = parameter("gamma", tensor({0.5}, {1}), Role::gate, 0.1);
  Gradients gradients(double g) const { return backward(sum(weight * tensor({g, 2 * g, -g}, {3})) + sum(gamma * g)); }
};

}  // namespace

TEST_CASE("AdamW follows its equations, decays weights only, and respects rate factors") {
  for (const Defaults where : {reference_f64, cpu_f32}) {
    const DefaultsScope scope(where);
    Pair pair;
    nn::AdamW optimizer(pair.parameters(), {.lr = 0.01, .beta1 = 0.9, .beta2 = 0.95, .weight_decay = 0.1});
    double w = 1, gamma = 0.5, m = 0, v = 0;
    for (int t = 1; t <= 5; ++t) {
      const double g = 0.3 * t;
      optimizer.step(pair.gradients(g));
      m = 0.9 * m + 0.1 * g;
      v = 0.95 * v + 0.05 * g * g;
      const double update = (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.95, t))) + 1e-8);
      w -= 0.01 * 0.1 * w + 0.01 * update;
      gamma -= 0.001 * update;
    }
    CHECK(pair.weight.values()[0] == Approx(w).epsilon(1e-6));
    CHECK(pair.gamma.values()[0] == Approx(gamma).epsilon(1e-6));
    CHECK(optimizer.steps_taken() == 5);
  }
}

TEST_CASE("SGD: plain, momentum, Nesterov") {
  const DefaultsScope scope(reference_f64);
  for (const bool nesterov : {false, true}) {
    Pair pair;
    nn::Sgd optimizer(pair.parameters(), {.lr = 0.1, .momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.05});
    double w = 1, velocity = 0;
    for (int t = 1; t <= 4; ++t) {
      optimizer.step(pair.gradients(t));
      const double g = t + 0.05 * w;
      velocity = 0.9 * velocity + g;
      w -= 0.1 * (nesterov ? g + 0.9 * velocity : velocity);
    }
    CHECK(pair.weight.values()[0] == Approx(w));
  }
  Pair pair;
  nn::Sgd plain(pair.parameters(), {.lr = 0.1});
  plain.step(pair.gradients(1));
  CHECK(pair.weight.values() == std::vector<double>{1 - 0.1, -2 - 0.2, 3 + 0.1});
  CHECK_THAT(error_of([&] { nn::Sgd bad(pair.parameters(), {.nesterov = true}); }), contains("expected momentum above 0"));
}

TEST_CASE("global-norm clipping scales all gradients by one factor") {
  const DefaultsScope scope(reference_f64);
  Pair clipped, scaled;
  const Gradients g = clipped.gradients(2);  // norm sqrt(4 + 16 + 4 + 4)
  CHECK(g.norm() == Approx(std::sqrt(28.0)));
  nn::Sgd(clipped.parameters(), {.lr = 1, .clip_norm = 1}).step(g);
  nn::Sgd(scaled.parameters(), {.lr = 1}).step(scaled.gradients(2 / std::sqrt(28.0)));
  CHECK(relative_error(clipped.weight, scaled.weight) < 1e-6);
  Pair part;
  part.own("gamma").frozen = true;  // its gradient does not count
  nn::Sgd(part.parameters(), {.lr = 1, .clip_norm = 1}).step(part.gradients(2));
  const Tensor moved = part.weight.detach() - tensor({1, -2, 3}, {3});
  CHECK(sum(moved * moved).item() == Approx(1).epsilon(1e-5));
  Pair free, same;
  nn::Sgd(free.parameters(), {.lr = 1, .clip_norm = 100}).step(free.gradients(2));
  nn::Sgd(same.parameters(), {.lr = 1}).step(same.gradients(2));
  CHECK(free.weight.values() == same.weight.values());
}

TEST_CASE("groups are resolved from roles and shown") {
  nn::ViT model({.image = 16, .patch = 8, .dim = 8, .depth = 2, .heads = 2, .gate = "fixup"});
  const nn::AdamW optimizer(model.parameters(), {.weight_decay = 0.05});
  const auto groups = optimizer.groups();
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].weight_decay == 0.05);
  CHECK(groups[1].weight_decay == 0);
  CHECK(groups[1].lr_factor == 1);
  CHECK(groups[2].lr_factor == 0.1);
  CHECK(groups[2].names.size() == 2 * 6);
  for (const std::string& name : groups[0].names) CHECK(name.ends_with("weight"));
  for (const char* name : {"cls_token", "pos_embed", "head.bias"}) CHECK(std::ranges::find(groups[1].names, name) != groups[1].names.end());
  CHECK_THAT(optimizer.describe_groups(), contains("decay 0.05") && contains("lr x 0.1"));
}

TEST_CASE("a parameter without gradient is an error unless frozen") {
  Pair pair;
  nn::Sgd optimizer(pair.parameters(), {.lr = 1});
  CHECK_THAT(error_of([&] { optimizer.step(backward(sum(pair.weight))); }),
             contains("[optimizer] expected a gradient for gamma [1], got none") && contains("freeze()"));
  pair.own("gamma").frozen = true;
  nn::Sgd frozen(pair.parameters(), {.lr = 1});
  frozen.step(pair.gradients(1));
  CHECK(pair.gamma.item() == Approx(0.5));
  CHECK(pair.weight.values()[0] == 0);
}

TEST_CASE("learning rates") {
  const nn::LearningRate c = nn::warmup_cosine(2, 4, 12);
  CHECK(c.at(0) == Approx(0.5));
  CHECK(c.at(3) == Approx(2));
  CHECK(c.at(4) == Approx(2));
  CHECK(c.at(8) == Approx(1));
  CHECK(c.at(12) == Approx(0).margin(1e-12));
  CHECK(c.at(100) == Approx(0).margin(1e-12));
  CHECK(nn::cosine(1, 200).at(0) == 1);
  CHECK(nn::warmup_constant(3, 2).at(0) == 1.5);
  CHECK(nn::warmup_constant(3, 2).at(7) == 3);
  CHECK(nn::LearningRate(0.1).at(5) == 0.1);
  CHECK_THAT(error_of([] { nn::warmup_cosine(1, 5, 4); }), contains("expected warm-up steps in 0..4, got 5"));
}
