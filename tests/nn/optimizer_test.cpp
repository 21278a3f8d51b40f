#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "autograd/checkpoint.h"
#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"
#include "tests/support/temporary_folder.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// Two parameters of different roles. A linear loss <p, g> gives the parameters the gradients g.
struct Pair : nn::Module {
  Pair() : Module("Pair") {}
  Tensor weight = parameter("weight", tensor({1, -2, 3}, {3}), Role::weight),
         gamma = parameter("gamma", tensor({0.5}, {1}), Role::gate, 0.1);
  Gradients gradients(double g) const { return backward(sum(weight * tensor({g, 2 * g, -g}, {3})) + sum(gamma * g)); }
};

// The options that the tests of all optimizers change.
struct Settings {
  nn::LearningRate lr = 1e-3;
  double eps = 1e-8, weight_decay = 0, clip_norm = 0, momentum = 0;
};

std::unique_ptr<nn::Optimizer> make_optimizer(const std::string& name, const nn::Module& m, const Settings& s) {
  if (name == "adamw")
    return std::make_unique<nn::AdamW>(
        m.parameters(),
        nn::AdamWOptions{.lr = s.lr, .eps = s.eps, .weight_decay = s.weight_decay, .clip_norm = s.clip_norm});
  if (name == "lamb")
    return std::make_unique<nn::Lamb>(
        m.parameters(),
        nn::LambOptions{.lr = s.lr, .eps = s.eps, .weight_decay = s.weight_decay, .clip_norm = s.clip_norm});
  if (name == "adagrad")
    return std::make_unique<nn::Adagrad>(
        m.parameters(),
        nn::AdagradOptions{
            .lr = s.lr, .lr_decay = 0.1, .eps = s.eps, .weight_decay = s.weight_decay, .clip_norm = s.clip_norm});
  return std::make_unique<nn::Sgd>(
      m.parameters(),
      nn::SgdOptions{.lr = s.lr, .momentum = s.momentum, .weight_decay = s.weight_decay, .clip_norm = s.clip_norm});
}

}  // namespace

TEST_CASE("AdamW follows its equations, decays weights only and respects learning-rate factors") {
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

TEST_CASE("SGD follows its equations with and without momentum and with Nesterov's form") {
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
  CHECK_THAT(error_of([&] { nn::Sgd bad(pair.parameters(), {.nesterov = true}); }),
             contains("expected a momentum above 0"));
}

// The expected values are from timm 1.0.31 in float64: w = sin(i + 1) [2, 3], gamma = sin(i + 7) [3], Lamb([w with
// weight_decay 0.1, gamma with 0], lr 0.02, betas (0.9, 0.99), eps, max_grad_norm), 5 steps t = 1.. with the gradients
// cos(t (i + 1)) and cos(t (i + 7)).
TEST_CASE("LAMB agrees with timm: a trust ratio for parameters that decay and Adam for the others") {
  struct Model : nn::Module {
    Model() : Module("Model") {}
    static Tensor sines(std::int64_t first, const Shape& shape) {
      std::vector<double> v(static_cast<std::size_t>(shape.numel()));
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = std::sin(static_cast<double>(first) + static_cast<double>(i));
      return tensor(v, shape);
    }
    Tensor w = parameter("w", sines(1, {2, 3}), Role::weight), gamma = parameter("gamma", sines(7, {3}), Role::gate);
    Gradients gradients(int t) const {
      std::vector<double> g(6), h(3);
      for (int i = 0; i < 6; ++i) g[static_cast<std::size_t>(i)] = std::cos(t * (i + 1));
      for (int i = 0; i < 3; ++i) h[static_cast<std::size_t>(i)] = std::cos(t * (i + 7));
      return backward(sum(w * tensor(g, {2, 3})) + sum(gamma * tensor(h, {3})));
    }
  };
  struct Answer {
    double eps, clip_norm;
    std::vector<double> w, gamma;
  };
  const Answer answers[] = {{1e-6,
                             0,
                             {0.861443711306943, 0.946379921878403, 0.16784163189807, -0.705265435577398,
                              -0.92650918395533, -0.395121115076873},
                             {0.636311640920445, 1.03253500236844, 0.443750607174742}},
                            {1e-6,
                             1,
                             {0.860604503515992, 0.949659501404392, 0.16621649425012, -0.702492636315679,
                              -0.928230995651379, -0.394873734912122},
                             {0.635579272291664, 1.03314016985747, 0.443265487303317}},
                            {0.01,
                             0,
                             {0.861254915367726, 0.946090878588514, 0.167979688418607, -0.70514791934141,
                              -0.926158904753676, -0.395343583999209},
                             {0.636659910158299, 1.03090450956548, 0.44335705001758}}};
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const Answer& a : answers) {
      const DefaultsScope scope(where);
      Model model;
      nn::Lamb optimizer(
          model.parameters(),
          {.lr = 0.02, .beta1 = 0.9, .beta2 = 0.99, .eps = a.eps, .weight_decay = 0.1, .clip_norm = a.clip_norm});
      for (int t = 1; t <= 5; ++t) optimizer.step(model.gradients(t));
      // Plumb's clipping divides by norm + 1e-6, as PyTorch's clip_grad_norm_ does; timm's Lamb divides by the norm.
      const double tolerance = where.dtype == DType::f32 ? 1e-5 : a.clip_norm > 0 ? 1e-7 : 1e-13;
      CHECK(relative_error(model.w.values(), a.w) < tolerance);
      CHECK(relative_error(model.gamma.values(), a.gamma) < tolerance);
    }
}

TEST_CASE("LAMB uses a trust ratio of 1 if a norm is 0") {
  const DefaultsScope scope(reference_f64);
  struct Zero : nn::Module {
    Zero() : Module("Zero") {}
    Tensor w = parameter("w", tensor({0, 0}, {2}), Role::weight);
  } model;
  nn::Lamb optimizer(model.parameters(), {.lr = 0.1, .eps = 1e-12, .weight_decay = 0.1});
  optimizer.step(backward(sum(model.w * tensor({0, 0}, {2}))));
  CHECK(model.w.values() == std::vector<double>{0, 0});
  optimizer.step(backward(sum(model.w * tensor({3, -3}, {2}))));
  const double direction = 0.1 / (1 - 0.9 * 0.9) / std::sqrt(0.001 / (1 - 0.999 * 0.999));
  CHECK(relative_error(model.w.values(), {-0.1 * direction, 0.1 * direction}) < 1e-10);
}

TEST_CASE("Adagrad follows its equations with learning-rate decay, initial accumulator and weight decay") {
  for (const Defaults where : {reference_f64, cpu_f32}) {
    const DefaultsScope scope(where);
    Pair pair;
    nn::Adagrad optimizer(pair.parameters(),
                          {.lr = 0.1, .lr_decay = 0.5, .eps = 0.01, .initial_accumulator = 0.2, .weight_decay = 0.1});
    double w = 1, gamma = 0.5, w_sum = 0.2, gamma_sum = 0.2;
    for (int t = 1; t <= 4; ++t) {
      optimizer.step(pair.gradients(t));
      const double g = t + 0.1 * w, rate = 0.1 / (1 + (t - 1) * 0.5);
      w_sum += g * g;
      gamma_sum += t * t;
      w -= rate * g / (std::sqrt(w_sum) + 0.01);
      gamma -= 0.1 * rate * t / (std::sqrt(gamma_sum) + 0.01);
    }
    CHECK(pair.weight.values()[0] == Approx(w).epsilon(1e-6));
    CHECK(pair.gamma.values()[0] == Approx(gamma).epsilon(1e-6));
  }
  Pair pair;
  CHECK_THAT(error_of([&] { nn::Adagrad bad(pair.parameters(), {.lr_decay = -1}); }),
             contains("[adagrad] expected lr_decay"));
}

TEST_CASE("a parameter's eps factor multiplies the optimizer's eps") {
  const DefaultsScope scope(reference_f64);
  const auto moved = [](double factor, const std::string& optimizer) {
    Pair pair;
    pair.own("gamma").eps_factor() = factor;
    make_optimizer(optimizer, pair, {.lr = 1, .eps = 4})->step(pair.gradients(2));
    return std::pair(pair.weight.values()[0], 0.5 - pair.gamma.item());
  };
  // In the first step with gradient 2, the direction of Adam and of Adagrad is 2 / (2 + eps). The learning-rate factor
  // is 0.1.
  const double expected = 0.1 * 2 / (2 + 0.25 * 4), without = 0.1 * 2 / (2 + 4.0);
  for (const char* optimizer : {"adamw", "lamb", "adagrad"}) {
    CHECK(moved(0.25, optimizer).second == Approx(expected));
    CHECK(moved(1, optimizer).second == Approx(without));
    CHECK(moved(0.25, optimizer).first == moved(1, optimizer).first);
  }
  Pair pair;
  pair.own("gamma").eps_factor() = 0;
  CHECK_THAT(
      error_of([&] { nn::Sgd bad(pair.parameters(), {}); }),
      contains("finite factors for gamma: at least 0 for learning rate and decay, above 0 for eps; got 0.1, 0 and 0"));
}

TEST_CASE("a parameter's decay factor multiplies the optimizer's weight decay in every role") {
  const DefaultsScope scope(reference_f64);
  // Returns the weight and the bias after three steps.
  const auto trained = [](const std::string& name, double decay, double weight_factor, double bias_factor) {
    struct Model : nn::Module {
      Model() : Module("Model") {}
      Tensor weight = parameter("weight", tensor({1, -2}, {2}), Role::weight),
             bias = parameter("bias", tensor({3, 0.5}, {2}), Role::bias);
    } model;
    model.own("weight").decay_factor() = weight_factor;
    model.own("bias").decay_factor() = bias_factor;
    const auto optimizer = make_optimizer(name, model, {.weight_decay = decay});
    for (int t = 1; t <= 3; ++t)
      optimizer->step(backward(sum((model.weight + model.bias) * tensor({0.3 * t, -1}, {2}))));
    return std::pair(model.weight.values(), model.bias.values());
  };
  for (const char* name : {"adamw", "lamb", "sgd", "adagrad"}) {
    const auto none = trained(name, 0, 1, 1), both = trained(name, 0.2, 1, 1);
    CHECK(none.first != both.first);
    CHECK(none.second != both.second);
    // A bias with weight decay, and a weight without weight decay.
    CHECK(trained(name, 0.2, 0, 1) == std::pair(none.first, both.second));
    CHECK(trained(name, 0.1, 0, 2) == std::pair(none.first, both.second));
  }
  Pair pair;
  CHECK(pair.own("weight").decay_factor() == 1);
  CHECK(pair.own("gamma").decay_factor() == 0);
  pair.own("gamma").decay_factor() = 0.5;
  const nn::AdamW optimizer(pair.parameters(), {.weight_decay = 0.05});
  CHECK_THAT(optimizer.describe_groups(), contains("lr x 0.1  decay 0.025      1 tensors"));
  pair.own("gamma").decay_factor() = -1;
  CHECK_THAT(error_of([&] { nn::Sgd bad(pair.parameters(), {}); }),
             contains("[optimizer] expected finite factors for gamma") && contains("0.1, -1 and 1"));
}

TEST_CASE("options outside their bounds are rejected") {
  Pair pair;
  const std::vector<nn::Parameter> ps = pair.parameters();
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double beta : {-0.1, 1.0, nan}) {
    CHECK_THAT(error_of([&] { nn::AdamW bad(ps, {.beta1 = beta}); }),
               contains("[adamw] expected beta1 and beta2 in [0, 1), got "));
    CHECK_THAT(error_of([&] { nn::AdamW bad(ps, {.beta2 = beta}); }),
               contains("[adamw] expected beta1 and beta2 in [0, 1), got 0.9 and "));
    CHECK_THAT(error_of([&] { nn::Lamb bad(ps, {.beta1 = beta}); }),
               contains("[lamb] expected beta1 and beta2 in [0, 1), got "));
    CHECK_THAT(error_of([&] { nn::Sgd bad(ps, {.momentum = beta}); }),
               contains("[sgd] expected a momentum in [0, 1), got "));
  }
  for (const double eps : {0.0, -1e-8, nan, infinity}) {
    CHECK_THAT(error_of([&] { nn::AdamW bad(ps, {.eps = eps}); }), contains("[adamw] expected an eps above 0, got "));
    CHECK_THAT(error_of([&] { nn::Lamb bad(ps, {.eps = eps}); }), contains("[lamb] expected an eps above 0, got "));
    CHECK_THAT(error_of([&] { nn::Adagrad bad(ps, {.eps = eps}); }),
               contains("[adagrad] expected an eps above 0, got "));
  }
  for (const double bad_number : {-1.0, nan, infinity}) {
    CHECK_THAT(error_of([&] { nn::Adagrad bad(ps, {.initial_accumulator = bad_number}); }),
               contains("[adagrad] expected lr_decay and initial_acc"));
    CHECK_THAT(error_of([&] { nn::AdamW bad(ps, {.weight_decay = bad_number}); }),
               contains("[optimizer] expected a finite weight decay and clip norm"));
    CHECK_THAT(error_of([&] { nn::Sgd bad(ps, {.clip_norm = bad_number}); }),
               contains("[optimizer] expected a finite weight decay and clip norm"));
    CHECK_THAT(error_of([&] { nn::Sgd bad(ps, {.lr = bad_number}); }),
               contains("[learning_rate] expected a finite learning rate of at least 0, got "));
    nn::Sgd optimizer(ps, {.lr = nn::LearningRate([bad_number](std::int64_t) { return bad_number; })});
    CHECK_THAT(error_of([&] { optimizer.step(pair.gradients(1)); }),
               contains("expected a finite learning rate of at least 0 in step 0, got "));
    CHECK(optimizer.steps_taken() == 0);
  }
  CHECK(pair.weight.values() == std::vector<double>{1, -2, 3});
  nn::Sgd({ps}, {.lr = 0}).step(pair.gradients(1));  // a learning rate of 0 is allowed
  CHECK(pair.weight.values() == std::vector<double>{1, -2, 3});
}

TEST_CASE("a saved and loaded optimizer continues bit for bit") {
  struct Case {
    const char* optimizer;
    double momentum;
    std::set<std::string> names;
  };
  const std::set<std::string> moments{"steps", "weight.moment1", "weight.moment2", "gamma.moment1", "gamma.moment2"};
  const Case cases[] = {{"adamw", 0, moments},
                        {"lamb", 0, moments},
                        {"adagrad", 0, {"steps", "weight.sum", "gamma.sum"}},
                        {"sgd", 0.9, {"steps", "weight.velocity", "gamma.velocity"}},
                        {"sgd", 0, {"steps"}}};
  const TemporaryFolder folder;
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const auto& [name, momentum, names] : cases) {
      const DefaultsScope scope(where);
      Pair whole, halved, resumed;
      const Settings settings{.lr = nn::warmup_cosine(0.1, 2, 8), .momentum = momentum};
      const auto a = make_optimizer(name, whole, settings), b = make_optimizer(name, halved, settings),
                 c = make_optimizer(name, resumed, settings);
      for (int t = 1; t <= 3; ++t) a->step(whole.gradients(0.3 * t)), b->step(halved.gradients(0.3 * t));
      nn::save_weights(halved, folder / "weights");
      const nn::NamedTensors state = b->state();
      b->step(halved.gradients(9));  // `state` is a copy, so this step does not change it
      nn::write_safetensors(folder / "optimizer", {.tensors = state, .metadata = {}});

      nn::load_weights(resumed, folder / "weights");
      c->load_state(nn::read_safetensors(folder / "optimizer").tensors);
      CHECK(c->steps_taken() == 3);
      for (int t = 4; t <= 7; ++t) a->step(whole.gradients(0.3 * t)), c->step(resumed.gradients(0.3 * t));
      CHECK(whole.weight.values() == resumed.weight.values());
      CHECK(whole.gamma.values() == resumed.gamma.values());

      std::set<std::string> saved;
      for (const auto& [entry, t] : state) saved.insert(entry);
      CHECK(saved == names);
    }
}

TEST_CASE("a state that does not fit the optimizer is rejected as a whole") {
  Pair pair;
  pair.own("gamma").frozen() = true;  // the optimizer has no memory of gamma
  nn::AdamW optimizer(pair.parameters(), {});
  optimizer.step(pair.gradients(1));
  nn::NamedTensors state = optimizer.state();
  CHECK(state.size() == 3);
  const std::vector<double> before = state.at("weight.moment1").values();
  state["weight.moment1"] = zeros({3});
  state["weight.moment2"] = zeros({2});
  state["weight.velocity"] = zeros({3});
  state.erase("steps");
  CHECK(error_of([&] { optimizer.load_state(state); }) ==
        "[optimizer] load_state: expected 3 tensors with the names and shapes they have here, got 1 missing: steps; 1 "
        "unexpected: weight.velocity; "
        "1 of another shape or dtype: weight.moment2 (expected f32 [3], got f32 [2])");
  CHECK(optimizer.state().at("weight.moment1").values() == before);
  CHECK(optimizer.steps_taken() == 1);

  state = optimizer.state();
  state["weight.moment1"] = zeros({3});
  for (const std::int64_t steps : {std::int64_t{-1}, (std::int64_t{1} << 53) + 1}) {
    state["steps"] = integers({steps}, {});
    CHECK(error_of([&] { optimizer.load_state(state); }) ==
          fmt::format("[optimizer] load_state: expected \"steps\" in 0..2^53, got {}", steps));
  }
  CHECK(optimizer.state().at("weight.moment1").values() == before);

  std::vector<nn::Parameter> twice = pair.parameters();
  twice.push_back(twice[0]);
  CHECK_THAT(error_of([&] { nn::AdamW(twice, {}).state(); }),
             contains("[optimizer] expected each parameter once, got the same one as weight and weight"));
  twice.back().value = variable(twice[0].value);
  CHECK_THAT(error_of([&] { nn::AdamW(twice, {}).state(); }), contains("got two named weight"));
}

TEST_CASE("clipping by the global norm scales all gradients by one factor") {
  const DefaultsScope scope(reference_f64);
  Pair clipped, scaled;
  const Gradients g = clipped.gradients(2);  // norm sqrt(4 + 16 + 4 + 4)
  CHECK(g.norm() == Approx(std::sqrt(28.0)));
  nn::Sgd(clipped.parameters(), {.lr = 1, .clip_norm = 1}).step(g);
  nn::Sgd(scaled.parameters(), {.lr = 1}).step(scaled.gradients(2 / std::sqrt(28.0)));
  CHECK(relative_error(clipped.weight, scaled.weight) < 1e-6);
  Pair part;
  part.own("gamma").frozen() = true;  // the gradient of a frozen parameter does not count
  nn::Sgd(part.parameters(), {.lr = 1, .clip_norm = 1}).step(part.gradients(2));
  const Tensor moved = part.weight.detach() - tensor({1, -2, 3}, {3});
  CHECK(sum(moved * moved).item() == Approx(1).epsilon(1e-5));
  Pair free, same;
  nn::Sgd(free.parameters(), {.lr = 1, .clip_norm = 100}).step(free.gradients(2));
  nn::Sgd(same.parameters(), {.lr = 1}).step(same.gradients(2));
  CHECK(free.weight.values() == same.weight.values());
}

TEST_CASE("groups follow from roles and are described in text") {
  nn::ViT model(
      {.image = 16, .patch = 8, .dim = 8, .depth = 2, .heads = 2, .method = "fixup", .pool = nn::Pool::token});
  const nn::AdamW optimizer(model.parameters(), {.weight_decay = 0.05});
  CHECK(optimizer.describe_groups() ==
        "lr x 1    decay 0.05      10 tensors       3152 elements, first patch_embed.proj.weight\n"
        "lr x 1    decay 0         14 tensors        226 elements, first cls_token\n"
        "lr x 0.1  decay 0         12 tensors         12 elements, first blocks.0.gate1.scale\n");

  model.each_parameter(
      [](const std::string& name, nn::Parameter& p) { p.eps_factor() = name == "blocks.1.mlp.fc1.weight" ? 0.5 : 1; });
  const nn::AdamW parted(model.parameters(), {.weight_decay = 0.05});
  CHECK_THAT(parted.describe_groups(),
             contains("decay 0.05  eps x 0.5       1 tensors        256 elements, first blocks.1.mlp.fc1.weight"));
}

TEST_CASE("a parameter without a gradient is an error unless it is frozen") {
  Pair pair;
  nn::Sgd optimizer(pair.parameters(), {.lr = 1});
  CHECK_THAT(error_of([&] { optimizer.step(backward(sum(pair.weight))); }),
             contains("[optimizer] expected a gradient for gamma [1], got none") && contains("freeze()"));
  pair.own("gamma").frozen() = true;
  nn::Sgd frozen(pair.parameters(), {.lr = 1});
  frozen.step(pair.gradients(1));
  CHECK(pair.gamma.item() == Approx(0.5));
  CHECK(pair.weight.values()[0] == 0);
}

TEST_CASE("learning-rate schedules have the expected values") {
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

  const nn::LearningRate vaswani = nn::warmup_inverse_sqrt(2, 4);
  for (const auto& [step, rate] :
       {std::pair(0, 0.5), std::pair(3, 2.0), std::pair(15, 1.0), std::pair(4, 2 * std::sqrt(0.8))})
    CHECK(vaswani.at(step) == Approx(rate));
  const nn::LearningRate t_fixup = nn::inverse_sqrt(5e-4, 4000);
  CHECK(t_fixup.at(0) == 5e-4);
  CHECK(t_fixup.at(1) == Approx(5e-4 * std::sqrt(4000.0 / 4001)));
  CHECK(t_fixup.at(12000) == Approx(2.5e-4));
  const nn::LearningRate resnet = nn::step_decay(0.1, {100, 150});
  for (const auto& [step, rate] :
       {std::pair(99, 0.1), std::pair(100, 0.01), std::pair(149, 0.01), std::pair(150, 0.001), std::pair(999, 0.001)})
    CHECK(resnet.at(step) == Approx(rate));
  CHECK(nn::exponential_decay(0.01, 0.9, 10).at(9) == 0.01);
  CHECK(nn::exponential_decay(0.01, 0.9, 10).at(25) == Approx(0.0081));
  const nn::LearningRate late = nn::warmed_up(nn::step_decay(1, {10}, 0.5), 4);
  for (const auto& [step, rate] : {std::pair(0, 0.25), std::pair(3, 1.0), std::pair(13, 1.0), std::pair(14, 0.5)})
    CHECK(late.at(step) == Approx(rate));

  CHECK_THAT(error_of([] { nn::warmed_up(1, -1); }), contains("at least 0 warm-up steps, got -1"));
  CHECK_THAT(error_of([] { nn::warmup_inverse_sqrt(1, 0); }), contains("at least 1 warm-up step"));
  CHECK_THAT(error_of([] { nn::inverse_sqrt(1, 0); }), contains("a period of at least 1 step, got 0"));
  CHECK_THAT(error_of([] { nn::exponential_decay(1, 0.9, 0); }), contains("a period of at least 1 step, got 0"));
  CHECK_THAT(error_of([] { nn::step_decay(1, {3, 2}); }), contains("ascending order, got 3, 2"));
  CHECK_THAT(error_of([] { nn::warmup_cosine(1, 5, 4); }), contains("expected warm-up steps in 0..4, got 5"));
}

TEST_CASE("a frozen parameter gets no gradient, adds nothing to the norm and costs no work until it is unfrozen") {
  Pair pair;
  pair.own("gamma").frozen() = true;
  int asked = 0;  // number of computations of a gradient that only gamma needs
  const auto probed = [&] {
    return record("probe", pair.gamma.array(), {pair.gamma},
                  [&asked](const Tensor& dy) { return ++asked, Tensors{dy}; });
  };
  CHECK_FALSE(pair.gamma.requires_grad());
  const Gradients g = backward(sum(pair.weight * probed()));
  CHECK(asked == 0);
  REQUIRE(g.entries().size() == 1);
  CHECK_FALSE(g.find(pair.gamma).defined());
  CHECK(g.norm() == Approx(0.5 * std::sqrt(3.0)));
  CHECK_THAT(error_of([&] { g["gamma"]; }), contains("not frozen, got \"gamma\""));

  pair.own("gamma").frozen() = false;
  CHECK(backward(sum(pair.weight * probed())).find(pair.gamma).item() == 2);
  CHECK(asked == 1);
}

TEST_CASE(
    "a parameter frozen after the forward pass gets no gradient and one frozen after the backward pass does not move") {
  Pair pair;
  nn::Sgd optimizer(pair.parameters(), {.lr = 1});
  const Tensor loss = sum(pair.weight) + sum(pair.gamma * pair.gamma);
  const Gradients before = backward(loss);
  pair.own("gamma").frozen() = true;
  CHECK(before.entries().size() == 2);
  CHECK(backward(loss).entries().size() == 1);
  optimizer.step(before);
  CHECK(pair.gamma.item() == 0.5);
  CHECK(pair.weight.values() == std::vector<double>{0, -3, 2});
}

TEST_CASE("checkpoint() leaves frozen parameters alone") {
  Pair pair;
  pair.own("gamma").frozen() = true;
  const Gradients g =
      backward(sum(checkpoint([&](const Tensors& in) { return in[0] * pair.weight * pair.gamma; }, {ones({3})})));
  REQUIRE(g.entries().size() == 1);
  CHECK(g.find(pair.weight).values() == std::vector<double>{0.5, 0.5, 0.5});
}

TEST_CASE("an optimizer sees changes of frozen flags and factors that are made after its construction") {
  Pair pair;
  nn::Sgd optimizer(pair.parameters(), {.lr = 1});
  pair.own("gamma").frozen() = true;
  optimizer.step(pair.gradients(1));
  CHECK(pair.gamma.item() == 0.5);
  CHECK(pair.weight.values() == std::vector<double>{0, -4, 4});
  CHECK_THAT(optimizer.describe_groups(), contains("first gamma, frozen\n") && !contains("first weight, frozen"));

  pair.freeze(false);
  pair.each_parameter([](const std::string&, nn::Parameter& p) { p.lr_factor() = p.name == "gamma" ? 0.25 : 0.5; });
  optimizer.step(pair.gradients(1));
  CHECK(pair.gamma.item() == 0.25);
  CHECK(pair.weight.values() == std::vector<double>{-0.5, -5, 4.5});
  CHECK_THAT(optimizer.describe_groups(), contains("lr x 0.25") && contains("lr x 0.5") && !contains("frozen"));
}

TEST_CASE("parameters are handles: copies share factors and frozen and can be sorted and erased") {
  Pair pair;
  std::vector<nn::Parameter> ps = pair.parameters();
  ps[0].lr_factor() = 0.5;
  CHECK(pair.own("weight").lr_factor() == 0.5);
  std::ranges::reverse(ps);
  CHECK(ps[0].name == "gamma");
  CHECK(ps[0].lr_factor() == 0.1);
  CHECK(ps[1].lr_factor() == 0.5);
  std::erase_if(ps, [](const nn::Parameter& p) { return p.role == nn::Role::gate; });
  REQUIRE(ps.size() == 1);
  CHECK(ps[0].value.node() == pair.weight.node());
  ps[0].frozen() = true;
  CHECK(pair.own("weight").frozen());
  CHECK_FALSE(pair.own("gamma").frozen());
  ps[0].frozen() = pair.own("gamma").frozen();
  pair.own("gamma").frozen() = true;
  CHECK_FALSE(pair.own("weight").frozen());
}

TEST_CASE("a parameter that is unfrozen later trains as if training began then") {
  const DefaultsScope scope(reference_f64);
  for (const char* optimizer : {"adamw", "lamb"}) {
    Pair late, fresh;
    late.own("gamma").frozen() = true;
    const auto a = make_optimizer(optimizer, late, {.lr = 0.1});
    for (int t = 0; t < 5; ++t) a->step(late.gradients(1));
    CHECK(a->state().size() == 3);
    late.own("gamma").frozen() = false;
    const auto b = make_optimizer(optimizer, fresh, {.lr = 0.1});
    for (const double g : {1.0, -0.3, 0.7}) a->step(late.gradients(g)), b->step(fresh.gradients(g));
    CHECK(late.gamma.item() == fresh.gamma.item());
    CHECK(late.gamma.item() != 0.5);
    CHECK(a->steps_taken() == 8);
  }
}

TEST_CASE(
    "a state saved while parameters were frozen for some steps continues bit for bit, frozen or not after loading") {
  for (const bool frozen_again : {false, true}) {
    Pair whole, resumed;
    const auto make = [](Pair& pair) {
      return std::make_unique<nn::AdamW>(pair.parameters(), nn::AdamWOptions{.lr = 0.1});
    };
    whole.own("gamma").frozen() = true;
    const auto a = make(whole);
    for (int t = 0; t < 3; ++t) a->step(whole.gradients(1));
    whole.own("gamma").frozen() = false;
    for (int t = 0; t < 2; ++t) a->step(whole.gradients(0.5));
    whole.own("gamma").frozen() = frozen_again;

    nn::NamedTensors state = a->state();
    CHECK(state.at("gamma.steps").item() == 2);
    CHECK_FALSE(state.contains("weight.steps"));
    resumed.own("gamma").frozen() = frozen_again;
    const auto b = make(resumed);
    copy_into(whole.weight.array(), resumed.weight.array()), copy_into(whole.gamma.array(), resumed.gamma.array());
    b->load_state(state);
    whole.own("gamma").frozen() = resumed.own("gamma").frozen() = false;
    for (int t = 0; t < 4; ++t) a->step(whole.gradients(0.3 * t)), b->step(resumed.gradients(0.3 * t));
    CHECK(whole.weight.values() == resumed.weight.values());
    CHECK(whole.gamma.values() == resumed.gamma.values());
  }
  // If the loaded state has no memory of a parameter, load_state() removes the memory of this parameter.
  Pair pair;
  nn::AdamW optimizer(pair.parameters(), {});
  pair.own("gamma").frozen() = true;
  nn::NamedTensors without = nn::AdamW(pair.parameters(), {}).state();
  optimizer.step(pair.gradients(1));
  CHECK(optimizer.state().contains("gamma.moment1"));
  optimizer.load_state(without);
  CHECK_FALSE(optimizer.state().contains("gamma.moment1"));
}

TEST_CASE("with several optimizers for one model, each steps its own parameters") {
  Pair pair;
  std::vector<nn::Parameter> ps = pair.parameters();
  nn::Sgd first({ps[0]}, {.lr = 1}), second({ps[1]}, {.lr = 1, .clip_norm = 1});
  const Gradients g = pair.gradients(1);
  CHECK_THAT(error_of([&] { first.step(g); }),
             contains("got 1 of other variables, which would never train: gamma [1]") && contains("step_own()"));
  first.step_own(g), second.step_own(g);
  CHECK(pair.weight.values() == std::vector<double>{0, -4, 4});
  CHECK(pair.gamma.item() == Approx(0.4));
}

TEST_CASE("statistics stay frozen") {
  struct Model : nn::Module {
    nn::Child<nn::BatchNorm2d> norm{this, "norm", 2};
  } model;
  model.freeze();
  model.freeze(false);
  for (const nn::Parameter& p : model.parameters()) CHECK(p.frozen() == p.name.starts_with("norm.running_"));
}

TEST_CASE("an optimizer without memory still counts its steps after loading") {
  struct Counting : nn::Optimizer {
    explicit Counting(std::vector<nn::Parameter> ps) : Optimizer(std::move(ps), 0.1, 0, 0) {}
    std::int64_t last = 0;
    void update(std::span<const Update> updates, const Array&) override { last = updates[0].step; }
  };
  Pair pair;
  Counting first(pair.parameters()), second(pair.parameters());
  for (int i = 0; i < 3; ++i) first.step(pair.gradients(1));
  second.load_state(first.state());
  second.step(pair.gradients(1));
  CHECK(second.last == 4);
}

TEST_CASE(
    "step_while_finite equals step() while loss and gradients are finite and then changes nothing until a state is "
    "loaded") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double clip_norm : {0.0, 0.5}) {
    Pair pair, other;
    nn::AdamW guarded(pair.parameters(), {.lr = 0.1, .clip_norm = clip_norm}),
        plain(other.parameters(), {.lr = 0.1, .clip_norm = clip_norm});
    for (int i = 0; i < 3; ++i) {
      const Gradients g = pair.gradients(1 + i);
      const nn::StepReading reading = guarded.step_while_finite(g);
      plain.step(other.gradients(1 + i));
      CHECK(reading.arrived());
      CHECK(reading.loss() == g.loss());
      CHECK(reading.norm() == Approx(g.norm()));
    }
    const auto weights = [](const Pair& p) {
      std::vector<double> all;
      for (const nn::Parameter& parameter : p.parameters())
        for (const double v : parameter.value.values()) all.push_back(v);
      return all;
    };
    const std::vector<double> before = weights(pair);
    CHECK(before == weights(other));
    const nn::NamedTensors state = guarded.state();
    CHECK(std::isnan(guarded.step_while_finite(pair.gradients(nan)).norm()));
    guarded.step_while_finite(pair.gradients(1));
    CHECK(weights(pair) == before);
    guarded.load_state(state);
    guarded.step_while_finite(pair.gradients(1));
    CHECK(weights(pair) != before);
  }
}

TEST_CASE("the loss of a sum of gradients is the sum of the losses, also on the device") {
  const Tensor x = variable(tensor({1, 2}, {2}));
  Gradients g;
  for (const double scale : {1.0, 3.0}) g += backward(sum(x * scale));
  g *= 0.5;
  CHECK(g.loss() == 6);
  CHECK(item(g.loss_array()) == 6);
  CHECK(item(g.squared_norm()) == 8);
  CHECK(g.norm() == Approx(std::sqrt(8.0)));
  CHECK_THAT(error_of([] { static_cast<void>(Gradients().loss_array()); }),
             contains("[gradients] expected the gradients of a loss, got an empty sum"));
  CHECK_THAT(error_of([] { static_cast<void>(Gradients().squared_norm()); }),
             contains("[gradients] expected the gradient of at least one variable, got none"));
}

TEST_CASE("every optimizer rejects a gradient with an inf or a NaN and changes nothing") {
  struct Wide : nn::Module {
    Tensors all;
    Wide() : Module("Wide") {
      for (int i = 0; i < 12; ++i) all.push_back(parameter(fmt::format("p{}", i), tensor({1, 2}, {2}), Role::weight));
    }
    // Returns the gradient `g` for the first `bad` parameters, and the gradient 30 for the other parameters.
    Gradients gradients(double g, std::size_t bad) const {
      Tensor loss;
      for (std::size_t i = 0; i < all.size(); ++i) {
        const Tensor term = sum(all[i] * tensor({i < bad ? g : 30, 30}, {2}, {all[i].dtype(), all[i].device()}));
        loss = loss.defined() ? loss + term : term;
      }
      return backward(loss);
    }
  };
  for (const Defaults where : {reference_f64, cpu_f32})
    for (const std::string kind : {"adamw", "lamb", "sgd", "adagrad"})
      for (const double clip_norm : {0.0, 1.0})
        for (const double bad :
             {std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), std::nan("")}) {
          CAPTURE(kind, clip_norm, bad);
          const DefaultsScope scope(where);
          Wide model;
          const auto optimizer = make_optimizer(kind, model, {.clip_norm = clip_norm, .momentum = 0.9});
          optimizer->step(model.gradients(1, 1));
          const nn::NamedTensors state = optimizer->state();
          const auto values = [&] {
            std::vector<std::vector<double>> all;
            for (const Tensor& p : model.all) all.push_back(p.values());
            return all;
          };
          const auto before = values();
          const std::string one = error_of([&] { optimizer->step(model.gradients(bad, 1)); });
          CHECK_THAT(one, contains("[optimizer] expected gradients without inf and NaN, got inf or NaN in the "
                                   "gradients of p0; nothing has changed"));
          CHECK_THAT(error_of([&] { optimizer->step_own(model.gradients(bad, 12)); }),
                     contains("in the gradients of p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more; nothing"));
          CHECK(values() == before);
          CHECK(optimizer->steps_taken() == 1);
          for (const auto& [name, value] : optimizer->state()) CHECK(value.values() == state.at(name).values());
          optimizer->check_finite();
          optimizer->step(model.gradients(1, 1));  // the next step, with finite gradients, is valid
          CHECK(values() != before);
          CHECK(optimizer->steps_taken() == 2);
        }
  // The caller may repair a gradient.
  Wide repaired;
  const Gradients g = repaired.gradients(std::nan(""), 1);
  CHECK(std::isnan(g.norm()));
  copy_into(zeros({2}).array(), g["p0"].array());
  nn::Sgd(repaired.parameters(), {}).step(g);
  // The gradients are finite, but their squares overflow.
  const DefaultsScope f64(reference_f64);
  Wide large;
  CHECK_THAT(
      error_of([&] { nn::Sgd(large.parameters(), {}).step(large.gradients(1e200, 1)); }),
      contains("expected gradients with a norm that f64 can hold, got a norm that overflows; nothing has changed"));
}
