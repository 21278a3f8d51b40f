// Distributions and special functions for statistics over seeds.
#pragma once

#include <cstdint>

namespace plumb::lab {

// P(T > t) for t >= 0 and Student's t distribution with `degrees` degrees of freedom. `degrees` may be infinite.
double student_t_tail(double t, double degrees);
// The t with P(T <= t) = p for Student's t distribution with `degrees` degrees of freedom. The relative error is below
// 1e-9. Throws Error unless 0 < p < 1 and degrees > 0.
double student_t_quantile(double p, double degrees);

// P(F > f) for f >= 0 and Fisher's F distribution with these degrees of freedom.
double fisher_f_tail(double f, double numerator, double denominator);

// The upper confidence limit of a share of which `hits` of `trials` are known (Clopper and Pearson 1934, one-sided).
// `confidence` is the chance that the limit is above the share. Throws Error unless 0 <= hits < trials.
double upper_share(std::int64_t hits, std::int64_t trials, double confidence);

// The p value of the exact two-sided sign test: 2 P(X >= max(wins, losses)), at most 1, where X is the number of heads
// in wins + losses tosses of a fair coin.
double sign_test(std::int64_t wins, std::int64_t losses);

// digamma() and trigamma(): the first and the second derivative of the logarithm of the gamma function, for x > 0.
double digamma(double x);
double trigamma(double x);
// The x > 0 with trigamma(x) = y, for y > 0. The relative error is below 1e-9.
double inverse_trigamma(double y);

}  // namespace plumb::lab
