#include "experiments/lab/study/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/backend.h"
#include "experiments/lab/hash.h"
#include "experiments/lab/record/json_value.h"
#include "experiments/lab/stats/claim_check.h"
#include "experiments/lab/study/combinations.h"
#include "experiments/lab/study/rate_search.h"

namespace plumb::lab {

bool Plan::is_searched(const AxisData& axis) const {
  const auto shares_rate = [&] { return std::ranges::find(study_.shared_by, axis.name) != study_.shared_by.end(); };
  return !axis.declared || (study_.has_own_rates() && (axis.name == "lr" || shares_rate()));
}

std::string Plan::note_on(const Search& search, const DataFacts& data) const {
  return study_.has_own_rates() ? note_on_rates(study_, search, data.chance()) : "";
}

std::vector<Point> Plan::grid() const { return study_.has_own_rates() ? places_of(study_) : combinations_of(study_); }

Point Plan::point_of(const Point& on_grid, const Point& searched, std::int64_t seed) const {
  Point point;
  for (const AxisData& axis : study_.axes) {
    const AxisValue* value = is_searched(axis) ? searched.find(axis.name) : on_grid.find(axis.name);
    check(value, "[search] expected points with a value of {}, got {}", axis.name, searched.label());
    point.set(axis.name, *value);
  }
  // The searched point of a study with own rates may also have the marks of searches and neighbours, and "lr" although
  // no axis has this name.
  for (const auto& [name, value] : searched.entries())
    if (study_.has_own_rates() && !point.find(name)) point.set(name, value);
  check(std::ranges::all_of(searched.entries(),
                            [&](const Point::Entry& e) { return point.find(e.first) && !on_grid.find(e.first); }),
        "[search] expected values of searched axes only, got {}", searched.label());
  point.set("seed", seed);
  return point;
}

double Plan::cost_of(const Point& point) const {
  const AxisValue* depth = point.find("depth");
  const auto* blocks = depth ? std::get_if<std::int64_t>(depth) : nullptr;
  return static_cast<double>(blocks ? *blocks : 1) *
         static_cast<double>(std::max<std::int64_t>(study_.by_point.study(point).steps, 1));
}

std::string Plan::key_of(const Point& point, const DataFacts& data) const {
  // Strictly deterministic trials give the same bits with any number of threads, so their keys do not contain the
  // number of threads.
  const std::string threads =
      study_.options.deterministic == Determinism::strict ? "" : fmt::format("\n{} threads", num_threads());
  return hash_of(
      fmt::format("{}\n{}\n{}\n{}{}", study_.name, study_.cli.fixed_settings(), data.hash, to_json(point), threads));
}

std::vector<Claim> Plan::claims() const {
  std::vector<Claim> claims = study_.claims;
  if (study_.has_own_rates()) std::erase_if(claims, [](const Claim& c) { return c.comparison.names("lr"); });
  return claims;
}

std::vector<std::string> Plan::claims_not_judged() const {
  std::vector<ClaimAxis> axes;
  for (const AxisData& axis : study_.axes) {
    ClaimAxis& a =
        axes.emplace_back(ClaimAxis{.name = axis.name, .option = axis.option, .searched = axis.declared == nullptr});
    a.text = std::holds_alternative<std::vector<std::string>>(axis.values);
    std::visit([&](const auto& values) { a.values.assign(values.begin(), values.end()); }, axis.values);
    if (axis.declared) a.names = axis.declared->names();
  }
  axes.push_back(
      {.name = "seed", .option = "--seeds", .values = {study_.options.seeds.begin(), study_.options.seeds.end()}});
  std::vector<std::string> not_judged = lab::claims_not_judged(claims(), axes, combinations_of(study_));
  if (!study_.has_own_rates()) return not_judged;
  std::vector<Claim> about_rates = study_.claims;
  std::erase_if(about_rates, [](const Claim& c) { return !c.comparison.names("lr"); });
  lab::claims_not_judged(about_rates, axes,
                         combinations_of(study_));  // throws Error for claims that are wrong in every call
  for (const Claim& claim : about_rates)
    not_judged.push_back(claim.text + ": each method trains at its own learning rate; --at-lr judges the claim");
  return not_judged;
}

void Plan::check_for(const DataFacts& data) const {
  for (const Point& point : study_.has_own_rates() ? cells_of(study_) : combinations_of(study_)) {
    study_.by_point.check(point);
    if (study_.check_point) study_.check_point(point, data);
    const StudyOptions o = study_.by_point.study(point);
    usage_check(o.warmup.value_or(0) <= o.steps, "--warmup {} is longer than --steps {}", o.warmup.value_or(0),
                o.steps);
  }
  const Measure* criterion = find_measure(data.measures, study_.rates_by.value);
  internal_check(!criterion || criterion->better == study_.rates_by.better,
                 "choose_rates_by(\"{}\") has another direction than the measure of the problem",
                 study_.rates_by.value);
  for (const auto& check : study_.checks) check(data);
}

}  // namespace plumb::lab
