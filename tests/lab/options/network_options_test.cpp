#include "experiments/lab/options/network_options.h"

#include "core/enum_names.h"
#include "nn/gates/method.h"

#include "tests/support/catch.h"

using namespace plumb;

TEST_CASE("The option --weight-init accepts the recipe and the name of every base") {
  std::vector<std::string> names{"recipe", "recipe_scaled"};
  names.insert(names.end(), nn::base_names().begin(), nn::base_names().end());
  std::vector<std::string> ours;
  for (const lab::WeightInit init : enum_values<lab::WeightInit>()) ours.emplace_back(enum_name(init));
  CHECK(ours == names);
  lab::NetworkOptions o;
  o.weight_init = lab::WeightInit::xavier_packed;
  CHECK(o.recipe_of({}).base == nn::Base::xavier_packed);
}

TEST_CASE("Reports name the schedules of stochastic depth as --drop-path-schedule does") {
  lab::DropOptions o;
  CHECK(o.describe_path() == "none");
  o.drop_path = 0.1;
  CHECK(o.describe_path() == "0.1, uniform, rescaled");
  o.drop_path_schedule = nn::Schedule::increasing;
  CHECK(o.describe_path() == "0.1, linear, rescaled");
}
