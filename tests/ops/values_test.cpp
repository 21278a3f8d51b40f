// Values at the ends of their domain, derivatives at kinks and ties, and ops that return integers: what cases of random numbers do not meet.
#include <cmath>
#include <limits>

#include "autograd/autograd.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

const Defaults everywhere[] = {reference_f64, reference_f32, cpu_f32};

Tensor row(const Values& values, Defaults where = defaults()) { return tensor(values, {static_cast<std::int64_t>(values.size())}, where); }

// df/dx of the sum of f's elements.
Values slopes(const std::function<Tensor(const Tensor&)>& f, const Values& at, Defaults where) {
  const Tensor x = variable(row(at, where));
  return grad(sum(f(x)), x).values();
}

}  // namespace

TEST_CASE("sigmoid, silu, softplus and log1p are exact at both ends, and so are their derivatives") {
  for (const Defaults where : everywhere) {
    const double relative = where.dtype == DType::f64 ? 1e-14 : 1e-6;
    const auto near = [&](double value) { return Approx(value).epsilon(relative).margin(0); };
    const Values ends{-80, -20, 0, 20, 80};
    const Values s = sigmoid(row(ends, where)).values(), p = softplus(row(ends, where)).values(), u = silu(row(ends, where)).values();
    const Values ds = slopes([](const Tensor&x) { return sigmoid(x); }, ends, where),
                 dp = slopes([](const Tensor&x) { return softplus(x); }, ends, where);
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const double x = ends[i], logistic = x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
      CHECK(s[i] == near(logistic));
      CHECK(u[i] == near(x * logistic));
      CHECK(p[i] == near(x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))));
      CHECK(dp[i] == near(logistic));
      CHECK(ds[i] == Approx(logistic * (1 - logistic)).epsilon(relative).margin(1e-7));
    }
    const double infinity = std::numeric_limits<double>::infinity();
    CHECK(sigmoid(row({-1000, 1000, -infinity, infinity}, where)).values() == Values{0, 1, 0, 1});
    CHECK(softplus(row({-1000, 1000, infinity}, where)).values() == Values{0, 1000, infinity});
    CHECK(slopes([](const Tensor& x) { return softplus(x); }, {-1000, 0, 1000}, where) == Values{0, 0.5, 1});
    CHECK(slopes([](const Tensor& x) { return silu(x); }, {-1000, 0, 1000}, where) == Values{0, 0.5, 1});
    for (const double x : {1e-30, 1e-9, -1e-6, 1e-3, -0.5, 1e6})
      CHECK(log1p(row({x}, where)).values()[0] == near(std::log1p(row({x}, where).values()[0])));
    CHECK(slopes([](const Tensor& x) { return log1p(x); }, {0, 1, 3}, where) == Values{1, 0.5, 0.25});
  }
}

TEST_CASE("derivatives at kinks and ties are what ops.h says") {
  for (const Defaults where : everywhere) {
    CHECK(slopes([](const Tensor& x) { return abs(x); }, {-2, 0, 3}, where) == Values{-1, 0, 1});
    CHECK(slopes([](const Tensor& x) { return sign(x); }, {-2, 0, 3}, where) == Values{0, 0, 0});
    CHECK(slopes([](const Tensor& x) { return clamp(x, -1, 2); }, {-1.5, -1, 0, 2, 2.5}, where) == Values{0, 1, 1, 1, 0});
    CHECK(slopes([](const Tensor& x) { return min(x); }, {3, 1, 1, 2}, where) == Values{0, 0.5, 0.5, 0});
    CHECK(slopes([](const Tensor& x) { return max(x); }, {3, 1, 3, 2}, where) == Values{0.5, 0, 0.5, 0});
    CHECK(slopes([](const Tensor& x) { return norm(x); }, {0, 0}, where) == Values{0, 0});
    CHECK(slopes(
              [](const Tensor& x) {
                return norm(reshape(x, {2, 2}), {1});
              },
              {3, 4, 0, 0}, where) == slopes([](const Tensor& x) { return norm(slice(x, 0, 0, 2)); }, {3, 4, 0, 0}, where));
  }
}

TEST_CASE("values of sign, abs, clamp, min, var and norm") {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const Defaults where : everywhere) {
    CHECK(abs(row({-2, 0, 3, -infinity}, where)).values() == Values{2, 0, 3, infinity});
    CHECK(sign(row({-2, 0, 3, -infinity}, where)).values() == Values{-1, 0, 1, -1});
    CHECK(clamp(row({-2, 0.5, 3}, where), -1, 1).values() == Values{-1, 0.5, 1});
    CHECK(clamp(row({-2, 0.5, 3}, where), 0, infinity).values() == Values{0, 0.5, 3});
    CHECK(std::isnan(clamp(row({nan}, where), 0, 1).item()));
    CHECK(std::isnan(sign(row({nan}, where)).item()));
    const Tensor x = tensor({1, 5, -2, 4, 0, 7}, {2, 3}, where);
    CHECK(min(x).item() == -2);
    CHECK(min(x, {0}).values() == Values{1, 0, -2});
    CHECK(min(x, {1}, true).shape() == Shape{2, 1});
    CHECK(var(row({1, 2, 3, 6}, where)).item() == 3.5);
    CHECK(var(row({1, 3, 5}, where), {}, false, 1).item() == 4);
    CHECK(var(x, {0}, true).values() == Values{2.25, 6.25, 20.25});
    CHECK(norm(row({3, 4}, where)).item() == 5);
    CHECK(norm(tensor({3, 4, 0, 0}, {2, 2}, where), {1}).values() == Values{5, 0});
  }
  // In two passes: the mean's square does not cancel.
  CHECK(var(row({10000, 10001, 10002, 10003}, cpu_f32)).item() == 1.25);
}

TEST_CASE("argmax: along any axis, the first of equal ones, the first NaN") {
  const double nan = std::nan("");
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({1, 5, 5, 4, 0, 7, 4, 9, 2, -1, -2, -1}, {2, 3, 2}, where);
    CHECK(argmax(x).dtype() == DType::i64);
    CHECK(argmax(x).shape() == Shape{2, 3});
    CHECK(argmax(x).values() == Values{1, 0, 1, 1, 0, 1});
    CHECK(argmax(x, 1).values() == Values{1, 2, 0, 0});
    CHECK(argmax(x, 0, true).shape() == Shape{1, 3, 2});
    CHECK(argmax(x, 0).values() == Values{1, 1, 0, 0, 0, 0});
    CHECK(argmax(reshape(x, {-1})).item() == 7);
    CHECK(argmax(row({2, 7, 1, 7}, where)).item() == 1);
    CHECK(argmax(row({1, nan, 3, nan}, where)).item() == 1);
    CHECK(argmax(row({-3}, where)).item() == 0);
    CHECK_FALSE(argmax(variable(x)).requires_grad());
  }
}

TEST_CASE("comparisons are masks, of floats and of integers, false for NaN") {
  const double nan = std::nan("");
  for (const Defaults where : everywhere) {
    const Tensor a = row({1, 2, 3, nan}, where), b = row({2, 2, 2, 2}, where);
    CHECK((a < b).dtype() == DType::u8);
    CHECK((a < b).values() == Values{1, 0, 0, 0});
    CHECK((a <= b).values() == Values{1, 1, 0, 0});
    CHECK((a > b).values() == Values{0, 0, 1, 0});
    CHECK((a >= b).values() == Values{0, 1, 1, 0});
    CHECK(equal(a, b).values() == Values{0, 1, 0, 0});
    CHECK((a < 2).values() == Values{1, 0, 0, 0});
    CHECK((a <= 2).values() == Values{1, 1, 0, 0});
    CHECK((a > 2).values() == Values{0, 0, 1, 0});
    CHECK((a >= 2).values() == Values{0, 1, 1, 0});
    CHECK(equal(a, 2).values() == Values{0, 1, 0, 0});
    CHECK((reshape(slice(a, 0, 0, 3), {3, 1}) > slice(a, 0, 0, 3)).values() == Values{0, 0, 0, 1, 0, 0, 1, 1, 0});
    CHECK_FALSE((variable(a) > 0).requires_grad());
    CHECK(where.device == (a > 0).device());
  }
  for (const Device device : {Device::reference, Device::cpu}) {
    const Tensor labels = integers({0, 4, 2, (std::int64_t{1} << 53) - 1}, {4}, device);
    CHECK(equal(labels, integers({0, 3, 2, std::int64_t{1} << 53}, {4}, device)).values() == Values{1, 0, 1, 0});
    CHECK((labels > 2).values() == Values{0, 1, 0, 1});
    CHECK(equal(labels > 2, 1).values() == Values{0, 1, 0, 1});
  }
}

TEST_CASE("reshape with an open extent, stack and chunk move what they say") {
  const Tensor x = tensor({1, 2, 3, 4, 5, 6}, {2, 3}), y = x * 10;
  CHECK(reshape(x, {-1}).shape() == Shape{6});
  CHECK(reshape(x, {3, -1}).shape() == Shape{3, 2});
  CHECK(reshape(x, {-1, 1, 6}).shape() == Shape{1, 1, 6});
  CHECK(reshape(x, {6}).shape() == Shape{6});
  CHECK(reshape(x, {-1}).array().shares_buffer_with(x.array()));
  CHECK(reshape(sum(x), {}).shape() == Shape{});
  CHECK(reshape(tensor({1}, {1}), {}).shape() == Shape{});
  CHECK(stack({x, y}).shape() == Shape{2, 2, 3});
  CHECK(stack({x, y}).values() == Values{1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
  CHECK(stack({x, y}, -1).values() == Values{1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
  CHECK(stack({sum(x), sum(y)}).shape() == Shape{2});
  CHECK(stack({integers({1, 2}, {2}), integers({3, 4}, {2})}).values() == Values{1, 2, 3, 4});
  const Tensors columns = chunk(x, 3, 1);
  REQUIRE(columns.size() == 3);
  CHECK(columns[1].shape() == Shape{2, 1});
  CHECK(columns[1].values() == Values{2, 5});
  CHECK(chunk(x, 1, 0)[0].values() == x.values());
}

TEST_CASE("accuracy is the part of the rows whose largest logit is the label's") {
  const Tensor logits = tensor({0, 1, 2, 5, 1, 0, 1, 1, 0, 0, 3, 0}, {2, 2, 3});
  CHECK(accuracy(logits, integers({2, 0, 0, 1}, {2, 2})) == 1);
  CHECK(accuracy(logits, integers({2, 0, 1, 2}, {2, 2})) == 0.5);
  CHECK(accuracy(variable(logits), integers({0, 1, 1, 2}, {2, 2})) == 0);
}

TEST_CASE("the norm of zeros has derivatives of 0, of order one and two") {
  const Tensor x = variable(tensor({0, 0, 3, 4}, {2, 2}));
  const Tensor slope = grad(sum(norm(x, {1})), x, {.create_graph = true});
  CHECK(slope.values() == Values{0, 0, 0.6f, 0.8f});
  const Values second = grad(sum(slope), x).values();
  CHECK(second[0] == 0);
  CHECK(second[1] == 0);
  CHECK(second[2] == Approx(0.032).margin(1e-6));  // 1 / n - x_i (x_1 + x_2) / n^3
  CHECK(second[3] == Approx(-0.024).margin(1e-6));
}

TEST_CASE("max notices that its result was changed in place") {
  const Tensor x = variable(tensor({1, 5, 2}, {3}));
  const Tensor top = max(x);
  const Tensor y = top * top;
  copy_into(tensor({2}, {}).array(), top.array());
  CHECK_THAT(error_of([&] { static_cast<void>(backward(y)); }), contains("changed in place"));
}
