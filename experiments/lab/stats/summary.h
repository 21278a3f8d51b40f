// Statistics over seeds: means with 95 % Student-t intervals, and the arms of a study gathered by what they share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/lab/stats/outcome.h"

namespace plumb::lab {

// P(T > t) for t >= 0 and Student's distribution with `degrees` degrees of freedom, which may be infinite.
double student_t_tail(double t, double degrees);
// The t with P(T <= t) = p for Student's distribution with `degrees` degrees of freedom; 0 < p < 1, degrees > 0, else Error.
// Relative error below 1e-9.
double student_t_quantile(double p, double degrees);

// Mean of n values and the 95 % Student-t interval mean ± half_width. One value has no interval; no value has no mean (NaN).
struct Summary {
  std::int64_t n = 0;
  double mean = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> deviation = {};   // sample standard deviation, divisor n - 1
  std::optional<double> half_width = {};  // t(0.975, n - 1) deviation / sqrt(n)

  double low() const { return mean - half_width.value_or(0); }
  double high() const { return mean + half_width.value_or(0); }
};

// Values that are not finite are left out and not counted in n.
Summary summarize(const std::vector<double>& values);

// "1.234 ± 0.05": as many digits after the point as keep four of the mean; "–" without a value.
std::string to_string(const Summary& summary);

// The arms that differ only in their seed. The summaries are over the arms that ended ok: a diverged or failed one has no final loss.
struct ArmGroup {
  std::string gate = {};
  std::int64_t depth = 0;
  double lr = 0;
  std::vector<ArmResult> arms = {};
  std::int64_t ok = 0, diverged = 0, hopeless = 0, failed = 0;
  Summary train_loss = {}, val_loss = {}, val_accuracy = {};
  std::vector<Summary> further = {};
};

// How many steps half of the arms of a group survive without diverging or being given up as hopeless; failed arms are left out. The 95 % interval is
// by order statistics (the sign test inverted; no assumption on their distribution) and needs six of them.
struct Survival {
  std::int64_t n = 0;
  std::optional<std::int64_t> median = {};  // nothing: more than half survived all steps
  bool has_interval = false;
  std::int64_t low = 0;                   // with an interval
  std::optional<std::int64_t> high = {};  // nothing: beyond the last step
};
Survival survival(const ArmGroup& group);
// "median survival 69 steps (95 % interval 41 to 120)"; "median survival beyond 300 steps (no interval below 6 seeds)"
std::string to_string(const Survival& survival, std::int64_t steps);

// By (gate, depth, lr), in the order of first appearance.
std::vector<ArmGroup> group_arms(const std::vector<ArmResult>& arms);

}  // namespace plumb::lab
