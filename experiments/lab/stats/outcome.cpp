#include "experiments/lab/stats/outcome.h"

#include <cmath>
#include <limits>

#include "experiments/lab/record/chance.h"

namespace plumb::lab {

std::int64_t depth_of(const Point& point) {
  const AxisValue* depth = point.find("depth");
  const auto* blocks = depth ? std::get_if<std::int64_t>(depth) : nullptr;
  return blocks ? *blocks : 0;
}

double lr_of(const Point& point) { return point.find("lr") ? point.get<double>("lr") : 0; }

std::int64_t TrialResult::depth() const { return depth_of(point); }
double TrialResult::lr() const { return lr_of(point); }
std::uint64_t TrialResult::seed() const { return static_cast<std::uint64_t>(point.get<std::int64_t>("seed")); }

std::optional<double> TrialResult::value(std::string_view name) const {
  const double v = name == "steps" ? static_cast<double>(steps) : name == "seconds" ? seconds : value_of(values, name);
  return std::isfinite(v) ? std::optional(v) : std::nullopt;
}

double TrialResult::outcome(std::string_view name) const {
  if (status == Status::diverged || status == Status::hopeless) return std::numeric_limits<double>::infinity();
  return status == Status::failed ? unknown : value(name).value_or(unknown);
}

double TrialResult::clean_loss(double chance) const {
  return lab::clean_loss(outcome("train_loss"), value(target_entropy_name).value_or(0), chance);
}

bool has_trained(const TrialResult& trial, double chance) {
  const double loss = trial.clean_loss(chance);
  return trial.status == Status::ok && (std::isnan(loss) || loss < near_chance_share * chance);
}

std::optional<std::int64_t> TrialResult::diverged_at() const {
  const std::optional<double> step = value("diverged_at");
  return step ? std::optional(static_cast<std::int64_t>(*step)) : std::nullopt;
}

}  // namespace plumb::lab
