#include "experiments/lab/stats/distributions.h"

#include <cmath>
#include <numbers>

#include "core/error.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"

using namespace plumb;
using namespace plumb::lab;
using plumb::test::contains;
using plumb::test::error_of;
using plumb::test::infinity;

namespace {

// The t quantile for two degrees of freedom, which has a closed form.
double quantile_two_degrees(double p) { return (2 * p - 1) / std::sqrt(2 * p * (1 - p)); }

}  // namespace

TEST_CASE("t quantiles equal published values") {
  const double pi = std::acos(-1.0);
  CHECK(student_t_quantile(0.975, 1) == Approx(std::tan(0.475 * pi)).epsilon(1e-11));
  CHECK(student_t_quantile(0.975, 2) == Approx(quantile_two_degrees(0.975)).epsilon(1e-11));
  // Values from tables of the t distribution with ten digits.
  const std::pair<double, double> known[] = {
      {3, 3.182446305},  {4, 2.776445105},  {5, 2.570581836},  {9, 2.262157163},   {10, 2.228138852},
      {29, 2.045229642}, {30, 2.042272456}, {99, 1.984216952}, {100, 1.983971519}, {1000, 1.962339081}};
  for (const auto& [degrees, t] : known) CHECK(student_t_quantile(0.975, degrees) == Approx(t).margin(2e-9).epsilon(0));
  CHECK(student_t_quantile(0.95, 7) == Approx(1.894578605).margin(2e-9).epsilon(0));
  CHECK(student_t_quantile(0.9995, 2) == Approx(quantile_two_degrees(0.9995)).epsilon(1e-10));
}

TEST_CASE("t quantiles are antisymmetric and monotone in the degrees and converge to normal quantiles") {
  CHECK(student_t_quantile(0.025, 4) == Approx(-student_t_quantile(0.975, 4)).epsilon(1e-13));
  CHECK(student_t_quantile(0.5, 4) == Approx(0).margin(1e-12));
  CHECK(student_t_quantile(0.975, 1e12) == Approx(1.959963984540054).epsilon(1e-11));
  CHECK(student_t_quantile(0.975, 100001) == Approx(student_t_quantile(0.975, 99999)).margin(1e-9).epsilon(0));
  for (double d = 1; d < 2e5; d *= 1.7) CHECK(student_t_quantile(0.975, d) > student_t_quantile(0.975, d * 1.7));
}

TEST_CASE("a t quantile outside its domain is refused") {
  CHECK_THAT(error_of([] { student_t_quantile(1, 3); }), contains("expected 0 < p < 1"));
  CHECK_THROWS_AS(student_t_quantile(0.975, 0), Error);
  CHECK_THROWS_AS(student_t_quantile(std::nan(""), 3), Error);
}

TEST_CASE("t quantiles invert the tails of the t distribution") {
  CHECK(student_t_tail(0, 3) == Approx(0.5));
  CHECK(student_t_tail(2.7764451, 4) == Approx(0.025).epsilon(1e-6));
  CHECK(student_t_tail(1.9599640, 1e9) == Approx(0.025).epsilon(1e-6));
  for (const double degrees : {0.5, 1.0, 2.0, 3.7, 30.0, 1e4})
    for (const double tail : {0.49, 0.1, 1e-3, 1e-8})
      CHECK(student_t_tail(student_t_quantile(1 - tail, degrees), degrees) == Approx(tail).epsilon(1e-7));
}

TEST_CASE("far tails of the t distribution are exact for any number of degrees of freedom") {
  // Values computed by mpmath with 60 digits, from the incomplete beta function, the integral of the density, and the
  // complementary error function.
  CHECK(student_t_tail(30, 1e4) == Approx(1.0221635237127853e-189).epsilon(1e-11));
  CHECK(student_t_tail(10, 2e5) == Approx(7.7175865836856319e-24).epsilon(1e-11));
  CHECK(student_t_tail(30, infinity) == Approx(4.9067139271481871e-198).epsilon(1e-11));
  CHECK(student_t_tail(infinity, 3) == 0);
  CHECK(student_t_quantile(0.975, infinity) == Approx(1.959963984540054).epsilon(1e-14));
  CHECK(student_t_tail(1.959963984540054, infinity) == Approx(0.025).epsilon(1e-13));
}

TEST_CASE("the exact sign test has the probabilities of fair coins") {
  CHECK(sign_test(0, 0) == 1);
  CHECK(sign_test(1, 0) == 1);
  CHECK(sign_test(5, 5) == 1);
  CHECK(sign_test(6, 0) == Approx(2.0 / 64).epsilon(1e-13));
  CHECK(sign_test(8, 2) == Approx(2.0 * (1 + 10 + 45) / 1024).epsilon(1e-13));
  CHECK(sign_test(2, 8) == sign_test(8, 2));
  CHECK(sign_test(1000, 0) == Approx(std::ldexp(1, -999)).epsilon(1e-11));
}

TEST_CASE("digamma, trigamma and the inverse of trigamma have known values") {
  const double pi = std::numbers::pi;
  CHECK(digamma(1) == Approx(-std::numbers::egamma).epsilon(1e-14));
  CHECK(digamma(0.5) == Approx(-std::numbers::egamma - 2 * std::log(2.0)).epsilon(1e-14));
  CHECK(trigamma(1) == Approx(pi * pi / 6).epsilon(1e-14));
  CHECK(trigamma(0.5) == Approx(pi * pi / 2).epsilon(1e-14));
  CHECK(trigamma(2) == Approx(pi * pi / 6 - 1).epsilon(1e-14));
  CHECK(inverse_trigamma(pi * pi / 2) == Approx(0.5).epsilon(1e-12));
  for (double x = 1e-8; x < 1e15; x *= 3.7) CHECK(inverse_trigamma(trigamma(x)) == Approx(x).epsilon(1e-9));
}
