// Distributions and special functions that statistics over seeds need.
#pragma once

#include <cstdint>

namespace plumb::lab {

// P(T > t) for t >= 0 and Student's distribution with `degrees` degrees of freedom, which may be infinite.
double student_t_tail(double t, double degrees);
// The t with P(T <= t) = p for Student's distribution with `degrees` degrees of freedom; 0 < p < 1, degrees > 0, else
// Error. Relative error below 1e-9.
double student_t_quantile(double p, double degrees);

// The exact sign test, two-sided: twice P(X >= max(wins, losses)) for X heads of wins + losses fair coins, at most 1.
double sign_test(std::int64_t wins, std::int64_t losses);

// The first and the second derivative of log gamma at x > 0.
double digamma(double x);
double trigamma(double x);
// The x > 0 with trigamma(x) = y, for y > 0. Relative error below 1e-9.
double inverse_trigamma(double y);

}  // namespace plumb::lab
