#include "experiments/lab/options/optimizer_options.h"

#include "plumb/plumb.h"

#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct One : nn::Module {
  One() : Module("One") {}
  Tensor w = parameter("w", tensor({1, 2}, {2}), Role::weight);
};

std::vector<double> course(lab::ScheduleKind kind, std::int64_t warmup, std::int64_t steps) {
  const nn::LearningRate rate = lab::make_schedule(kind, 1, warmup, steps);
  std::vector<double> rates;
  for (std::int64_t s = 0; s < steps; ++s) rates.push_back(rate.at(s));
  return rates;
}

}  // namespace

TEST_CASE("Each kind makes its optimizer with the given weight decay and clipping") {
  const auto after = [](const auto& make) {
    One one;
    const auto optimizer = make(one.parameters());
    for (int i = 0; i < 2; ++i) optimizer->step(backward(sum(one.w * tensor({3, -4}, {2}))));
    return one.w.values();
  };
  const auto of = [&](lab::OptimizerKind kind) {
    return after([&](const auto& ps) { return lab::make_optimizer(kind, ps, 0.1, 0.2, 0.5); });
  };
  CHECK(of(lab::OptimizerKind::adamw) == after([](const auto& ps) {
          return std::make_unique<nn::AdamW>(ps, nn::AdamWOptions{.lr = 0.1, .weight_decay = 0.2, .clip_norm = 0.5});
        }));
  CHECK(of(lab::OptimizerKind::lamb) == after([](const auto& ps) {
          return std::make_unique<nn::Lamb>(ps, nn::LambOptions{.lr = 0.1, .weight_decay = 0.2, .clip_norm = 0.5});
        }));
  CHECK(of(lab::OptimizerKind::adagrad) == after([](const auto& ps) {
          return std::make_unique<nn::Adagrad>(ps,
                                               nn::AdagradOptions{.lr = 0.1, .weight_decay = 0.2, .clip_norm = 0.5});
        }));
  CHECK(of(lab::OptimizerKind::sgd) == after([](const auto& ps) {
          return std::make_unique<nn::Sgd>(
              ps, nn::SgdOptions{.lr = 0.1, .momentum = 0.9, .nesterov = true, .weight_decay = 0.2, .clip_norm = 0.5});
        }));
}

TEST_CASE("Learning-rate schedules are right for few steps and for a warm-up as long as the trial") {
  const std::vector<double> drops = course(lab::ScheduleKind::step, 0, 8), expected{1, 1, 1, 1, 0.1, 0.1, 0.01, 0.01};
  for (std::size_t i = 0; i < drops.size(); ++i) CHECK(drops[i] == Approx(expected[i]));
  CHECK(course(lab::ScheduleKind::step, 0, 1) == std::vector<double>{1});
  CHECK(course(lab::ScheduleKind::constant, 2, 4) == std::vector<double>{0.5, 1, 1, 1});
  CHECK(course(lab::ScheduleKind::inverse_sqrt, 0, 4)[0] == 1);
  CHECK(course(lab::ScheduleKind::inverse_sqrt, 0, 4)[3] == 0.5);
  CHECK(course(lab::ScheduleKind::cosine, 1, 5)[0] == 1);
  CHECK(course(lab::ScheduleKind::cosine, 1, 5)[3] == Approx(0.5));
  for (const lab::ScheduleKind kind : enum_values<lab::ScheduleKind>()) {
    CHECK(course(kind, 2, 2) == std::vector<double>{0.5, 1});
    CHECK_THAT(error_of([&] { lab::make_schedule(kind, 1, 3, 2); }),
               contains("[learning_rate] expected warm-up steps in 0..2, got 3"));
    CHECK(std::string(lab::title(kind)) != "");
  }
}
