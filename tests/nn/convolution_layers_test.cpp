// Tests of Conv2d, BatchNorm2d and DyT: shapes, initial values, running statistics, and the parameters that optimizers
// train.
#include <cmath>

#include "autograd/checkpoint.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct ResidualBranch : nn::Layer {  // the first layers of a convolutional network
  nn::Child<nn::Conv2d> conv{this, "conv", {.in = 3, .out = 8, .kernel = 3, .stride = 2, .padding = 1, .bias = false}};
  nn::Child<nn::BatchNorm2d> norm{this, "norm", 8};

  ResidualBranch() { nn::initialize(*this, 0); }
  Tensor forward(const Tensor& x) const override { return relu(norm(conv(x))); }
};

Tensor random_images(std::uint64_t seed) { return random_normal({4, 3, 8, 6}, seed, "images") * 2 + 1; }

}  // namespace

TEST_CASE("Conv2d has strides and padding and starts from He's distribution or another declared one") {
  nn::Conv2d conv({.in = 16, .out = 64, .kernel = 3, .stride = 2, .padding = 1});
  nn::initialize(conv, 0);
  CHECK(conv(zeros({2, 16, 9, 8})).shape() == Shape{2, 64, 5, 4});
  CHECK(relative_error(conv.bias(), zeros({64})) == 0);
  double square = 0;
  for (double w : conv.weight().values()) square += w * w / static_cast<double>(conv.weight().numel());
  CHECK(square == Approx(2.0 / (64 * 9)).epsilon(0.05));
  CHECK(conv.weight_init().description() == "he_normal");

  nn::Conv2d uniform({.in = 16, .out = 64, .kernel = 3, .init = nn::Init::fan_in_uniform()});
  nn::initialize(uniform, 0);
  double largest = 0;
  for (double w : uniform.weight().values()) largest = std::max(largest, std::abs(w));
  CHECK(largest == Approx(1 / std::sqrt(16.0 * 9)).epsilon(0.01));

  CHECK_THAT(error_of([] { nn::Conv2d({.in = 3, .out = 0, .kernel = 3}); }),
             contains("[conv2d] expected positive extents"));
  CHECK_THAT(error_of([] { nn::Init::he_normal().fill(Array({3}, DType::f32, Device::cpu), 0, "b"); }),
             contains("[init] expected a weight [out, in] or [out, in, kh, kw] for he_normal, got b [3]"));
}

TEST_CASE("BatchNorm2d moves its running statistics by a tenth and uses them in evaluation") {
  nn::BatchNorm2d norm(3);
  const Tensor x = random_images(1);
  const auto batch = batch_statistics(x);
  const Tensor y = norm(x);
  CHECK(relative_error(y, batch_norm2d(x, ones({3}), zeros({3}), 1e-5)) < 1e-6);
  const double pixels = 4 * 8 * 6;
  const Tensor mean = batch.first * 0.1, variance = batch.second * (0.1 * pixels / (pixels - 1)) + 0.9;
  CHECK(relative_error(norm.own("running_mean").value.values(), mean.values()) < 1e-6);
  CHECK(relative_error(norm.own("running_var").value.values(), variance.values()) < 1e-6);

  norm.eval();
  CHECK(relative_error(norm(x), batch_norm2d(x, mean, variance, ones({3}), zeros({3}), 1e-5)) < 1e-6);
  CHECK(relative_error(norm.own("running_mean").value.values(), mean.values()) <
        1e-6);  // evaluation does not change running_mean
  norm.train();
  norm(x);
  CHECK(relative_error(norm.own("running_mean").value.values(), (mean * 0.9 + batch.first * 0.1).values()) < 1e-6);
  CHECK_THAT(error_of([&] {
               norm(ones({1, 3, 1, 1}));
             }),
             contains("more than one value per channel in training, got images [1, 3, 1, 1]"));
  CHECK(error_of([] { nn::BatchNorm2d bad(0); }) == "[batch_norm2d] expected at least one channel, got 0");
  CHECK_THAT(error_of([] { nn::BatchNorm2d bad(-3); }), contains("at least one channel"));
  for (const double eps : {0.0, -1e-5, std::nan("")})
    CHECK_THAT(error_of([&] { nn::BatchNorm2d bad(3, eps); }),
               contains("[batch_norm2d] expected a finite eps of at least 1e-12, got "));
}

TEST_CASE("running statistics move once for a checkpointed forward pass") {
  ResidualBranch twice, once;
  const Tensor x = variable(random_images(2));
  static_cast<void>(backward(sum(checkpoint([&](const Tensors& in) { return twice(in[0]); }, {x}))));
  once(x);
  for (const char* name : {"running_mean", "running_var"})
    CHECK(twice.norm.own(name).value.values() == once.norm.own(name).value.values());
}

TEST_CASE("a convolutional network trains and optimizers do not touch its running statistics") {
  ResidualBranch net;
  nn::AdamW optimizer(net.parameters(), {.lr = 1e-2});
  std::vector<std::string> trained;
  for (const nn::Parameter& p : net.parameters())
    if (!p.frozen()) trained.push_back(p.name);
  CHECK(trained == std::vector<std::string>{"conv.weight", "norm.weight", "norm.bias"});
  double first = 0, last = 0;
  for (int step = 0; step < 20; ++step) {
    const Tensor difference = net(random_images(3)) - 1, loss = mean(difference * difference);
    last = loss.item();
    if (step == 0) first = last;
    optimizer.step(backward(loss));
  }
  CHECK(last < 0.8 * first);
}

TEST_CASE("DyT starts as the tanh of half its input") {
  nn::DyT norm(5);
  const Tensor x = random_normal({2, 3, 5}, 1, "x");
  CHECK(relative_error(norm(x), tanh(x * 0.5)) < 1e-6);
  for (const nn::Parameter& p : norm.parameters()) CHECK(p.role == nn::Role::norm);
  CHECK(norm.own("alpha").value.shape() == Shape{1});
  CHECK(nn::DyT(5, 0.8).own("alpha").value.item() == Approx(0.8));
}
