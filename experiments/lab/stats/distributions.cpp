#include "experiments/lab/stats/distributions.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/special_functions/digamma.hpp>
#include <boost/math/special_functions/polygamma.hpp>
#include <boost/math/special_functions/trigamma.hpp>
#include <cmath>

#include "core/error.h"

namespace plumb::lab {
namespace {

namespace bm = boost::math;
namespace bp = boost::math::policies;

// Errors give NaN or infinity instead of exceptions. All arithmetic is in double, because long double is slow and a
// relative error of 1e-9 does not need long double.
using Policy =
    bp::policy<bp::domain_error<bp::ignore_error>, bp::pole_error<bp::ignore_error>,
               bp::overflow_error<bp::ignore_error>, bp::evaluation_error<bp::ignore_error>, bp::promote_double<false>>;
using StudentT = bm::students_t_distribution<double, Policy>;
using FisherF = bm::fisher_f_distribution<double, Policy>;
using Binomial = bm::binomial_distribution<double, Policy>;

}  // namespace

double student_t_tail(double t, double degrees) { return cdf(complement(StudentT(degrees), t)); }

double student_t_quantile(double p, double degrees) {
  check(p > 0 && p < 1 && degrees > 0,
        "[student_t_quantile] expected 0 < p < 1 and degrees > 0, got p = {}, degrees = {}", p, degrees);
  return quantile(StudentT(degrees), p);
}

double fisher_f_tail(double f, double numerator, double denominator) {
  return cdf(complement(FisherF(numerator, denominator), f));
}

double upper_share(std::int64_t hits, std::int64_t trials, double confidence) {
  check(0 <= hits && hits < trials, "[upper_share] expected 0 <= hits < trials, got {} of {}", hits, trials);
  return Binomial::find_upper_bound_on_p(static_cast<double>(trials), static_cast<double>(hits), 1 - confidence);
}

double sign_test(std::int64_t wins, std::int64_t losses) {
  if (wins == losses) return 1;
  const Binomial heads(static_cast<double>(wins + losses), 0.5);
  return 2 * cdf(complement(heads, static_cast<double>(std::max(wins, losses) - 1)));
}

double digamma(double x) { return bm::digamma(x, Policy()); }
double trigamma(double x) { return bm::trigamma(x, Policy()); }

// Newton's method on log trigamma as a function of log x, which is convex with slopes between -2 and -1. The start is
// the asymptote for small y, x = 1/2 + 1/y. The error after a step is about the square of the error before the step.
double inverse_trigamma(double y) {
  double x = 0.5 + 1 / y;
  if (y < 1e-6) return x;  // the start is accurate to 1e-13
  for (int i = 0; i < 50; ++i) {
    const double at = trigamma(x), step = std::log(at / y) * at / (x * bm::polygamma(2, x, Policy()));
    x *= std::exp(-step);
    if (std::abs(step) < 1e-8) break;
  }
  return x;
}

}  // namespace plumb::lab
