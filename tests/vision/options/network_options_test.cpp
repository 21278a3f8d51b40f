#include "experiments/vision/options/network_options.h"

#include "core/enum_names.h"
#include "nn/gates/method.h"

#include "tests/support/catch.h"

using namespace plumb;

TEST_CASE("The option --weight-init accepts the recipe and the name of every base") {
  std::vector<std::string> names{"recipe", "recipe_scaled"};
  for (const std::string& base : enum_names<nn::Base>()) names.push_back(base);
  CHECK(enum_names<vision::WeightInit>() == names);
  vision::NetworkOptions o;
  o.weight_init = vision::WeightInit::xavier_packed;
  CHECK(o.recipe_of({}).base == nn::Base::xavier_packed);
}

TEST_CASE("Reports name the schedules of stochastic depth as --drop-path-schedule does") {
  vision::DropOptions o;
  CHECK(o.describe_path() == "none");
  o.drop_path = 0.1;
  CHECK(o.describe_path() == "0.1, uniform, rescaled");
  o.drop_path_schedule = vision::DropPathSchedule::linear;
  CHECK(o.describe_path() == "0.1, linear, rescaled");
}
