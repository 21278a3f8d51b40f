#include "autograd/jacobian.h"

#include <cmath>
#include <limits>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

double squared_norm(const Tensor& x) { return sum(x * x).item(); }

}  // namespace

TEST_CASE("the measure of a linear map is the squared Frobenius norm over the smaller side, for each row of a batch") {
  for (const Defaults where : {reference_f64, cpu_f32}) {
    const Tensor tall = random_normal({7, 3}, 0, "tall", where), wide = random_normal({3, 7}, 0, "wide", where);
    const auto measure = [&](const Tensor& weight, std::int64_t rows) {
      return mean_squared_singular_value([&](const Tensor& x) { return linear(x, weight); },
                                         random_normal({rows, weight.dim(1)}, 1, "x", where));
    };
    CHECK(measure(tall, 1).exact);
    CHECK(measure(tall, 1).standard_error == 0);
    CHECK(measure(tall, 1).value == Approx(squared_norm(tall) / 3).epsilon(1e-5));
    CHECK(measure(wide, 1).value == Approx(squared_norm(wide) / 3).epsilon(1e-5));
    CHECK(measure(wide, 5).value == Approx(squared_norm(wide) / 3).epsilon(1e-5));
  }
}

TEST_CASE("the measure of an elementwise map is the mean squared derivative, exactly even with random signs") {
  const Tensor x = random_normal({4, 100}, 0, "x", reference_f64);
  double expected = 0;
  for (double v : x.values()) expected += std::pow(1 - std::tanh(v) * std::tanh(v), 2) / 400;
  const Estimate estimate = mean_squared_singular_value([](const Tensor& t) { return tanh(t); }, x);
  CHECK_FALSE(estimate.exact);
  CHECK(estimate.value == Approx(expected));
  CHECK(estimate.standard_error < 1e-12);  // J is diagonal, so J^T v has the same squares for all signs
  CHECK(mean_squared_singular_value([](const Tensor& t) { return tanh(t); }, x, {.exact_limit = 400}).value ==
        Approx(expected));
}

TEST_CASE(
    "the estimate agrees with the exact value within its standard error, which shrinks with the number of probes") {
  const Tensor weight = random_normal({16, 24}, 0, "weight", reference_f64),
               x = random_normal({1, 24}, 0, "x", reference_f64);
  const auto f = [&](const Tensor& t) { return softmax(tanh(linear(t, weight))) * 10.0; };
  const double exact = mean_squared_singular_value(f, x).value;
  double spread = 0;  // mean over seeds of ((estimate - exact) / standard error)^2; about 1
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Estimate estimate = mean_squared_singular_value(f, x, {.exact_limit = 15, .probes = 100, .seed = seed});
    REQUIRE_FALSE(estimate.exact);
    REQUIRE(estimate.standard_error > 0);
    const double z = (estimate.value - exact) / estimate.standard_error;
    CHECK(std::abs(z) < 4);
    spread += z * z / 20;
  }
  CHECK(spread > 0.4);
  CHECK(spread < 2);
  const auto error = [&](std::int64_t probes) {
    return mean_squared_singular_value(f, x, {.exact_limit = 0, .probes = probes}).standard_error;
  };
  CHECK(error(6400) / error(100) == Approx(0.125).epsilon(0.3));
  CHECK(mean_squared_singular_value(f, x, {.exact_limit = 0, .seed = 3}).value ==
        mean_squared_singular_value(f, x, {.exact_limit = 0, .seed = 3}).value);
  CHECK(mean_squared_singular_value(f, x, {.exact_limit = 0, .seed = 3}).value !=
        mean_squared_singular_value(f, x, {.exact_limit = 0, .seed = 4}).value);
}

TEST_CASE("the measure of a constant is 0, works inside NoGrad and leaves the input unchanged") {
  const Tensor x = random_normal({3}, 0, "x");
  CHECK(mean_squared_singular_value([](const Tensor&) { return ones({2}); }, x).value == 0);
  const NoGrad no_grad;
  CHECK(mean_squared_singular_value([](const Tensor& t) { return t * 2.0; }, x).value == 4);
  CHECK_FALSE(x.requires_grad());
  CHECK_FALSE(std::isfinite(
      mean_squared_singular_value([](const Tensor& t) { return t * std::numeric_limits<double>::infinity(); }, x)
          .value));
}

TEST_CASE("inputs and options that cannot be measured are refused") {
  const auto same = [](const Tensor& t) { return t; };
  const Tensor x = zeros({3});
  CHECK_THAT(error_of([&] { mean_squared_singular_value(same, x, {.probes = 1}); }),
             contains("[jacobian] expected an exact_limit of at least 0 and at least 2 probes, got 256 and 1"));
  CHECK_THAT(error_of([&] { mean_squared_singular_value(same, x, {.exact_limit = -1}); }), contains("got -1 and 64"));
  CHECK_THAT(error_of([&] { mean_squared_singular_value(same, Tensor()); }),
             contains("expected a floating input with elements, got an undefined one"));
  CHECK_THAT(error_of([&] {
               mean_squared_singular_value(same, integers({1, 2}, {2}));
             }),
             contains("expected a floating input with elements, got i64 [2]"));
  CHECK_THAT(error_of([&] { mean_squared_singular_value([](const Tensor&) { return Tensor(); }, x); }),
             contains("expected a floating result with elements, got an undefined one"));
  CHECK_THAT(error_of([&] { mean_squared_singular_value([](const Tensor&) { return integers({1}, {1}); }, x); }),
             contains("expected a floating result with elements, got i64 [1]"));
}
