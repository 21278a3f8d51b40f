// Distributions that statistics over seeds need.
#pragma once

namespace plumb::lab {

// P(T > t) for t >= 0 and Student's distribution with `degrees` degrees of freedom, which may be infinite.
double student_t_tail(double t, double degrees);
// The t with P(T <= t) = p for Student's distribution with `degrees` degrees of freedom; 0 < p < 1, degrees > 0, else
// Error. Relative error below 1e-9.
double student_t_quantile(double p, double degrees);

}  // namespace plumb::lab
