// Tests that the role of a parameter determines its default factors.
#include <cmath>
#include <map>

#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

struct Everything : nn::Module {
  Everything() : Module("Everything") {
    for (const Role role :
         {Role::weight, Role::bias, Role::norm, Role::gate, Role::shift, Role::embedding, Role::position})
      parameter(enum_name(role), {2, 3}, nn::Init::constant(1), role);
    parameter("own_rate", {2}, nn::Init::constant(1), Role::weight, 0.1);
    parameter("own_decay", ones({2}), Role::gate, {}, 0.5);
    parameter("own_both", {2}, nn::Init::constant(1), Role::weight, 0.2, 0);
  }
};

}  // namespace

TEST_CASE("a role gives both factors, a registration may give others and own() changes them") {
  Everything model;
  std::map<std::string, std::pair<double, double>> factors;
  for (const nn::Parameter& p : model.parameters()) factors[p.name] = {p.lr_factor(), p.decay_factor()};
  using Pair = std::pair<double, double>;
  CHECK(factors.at("weight") == Pair{1, 1});
  for (const char* name : {"bias", "norm", "gate", "shift", "embedding", "position"})
    CHECK(factors.at(name) == Pair{1, 0});
  CHECK(factors.at("own_rate") == Pair{0.1, 1});
  CHECK(factors.at("own_decay") == Pair{1, 0.5});
  CHECK(factors.at("own_both") == Pair{0.2, 0});
  model.own("gate").decay_factor() = 1;
  CHECK(model.own("gate").decay_factor() == 1);
}

TEST_CASE("the start of a linear layer's bias and the role of its weight can be chosen") {
  const nn::Linear plain({.in = 2, .out = 3});
  CHECK(plain.bias().values() == std::vector<double>{0, 0, 0});
  CHECK(plain.parameters()[0].role == nn::Role::weight);
  nn::Linear gate({.in = 2, .out = 3, .bias_init = nn::Init::constant(-2), .role = nn::Role::gate});
  nn::initialize(gate, 1);
  CHECK(gate.bias().values() == std::vector<double>{-2, -2, -2});
  const std::vector<nn::Parameter> parameters = gate.parameters();
  CHECK(parameters[0].role == nn::Role::gate);
  CHECK(parameters[0].decay_factor() == 0);
  CHECK(parameters[1].role == nn::Role::bias);
  CHECK(std::ranges::count(nn::AdamW(parameters, {.weight_decay = 0.1}).describe_groups(), '\n') == 1);
}

TEST_CASE("invalid factors are rejected at registration") {
  struct Bad : nn::Module {
    Bad(Factor lr, Factor decay) : Module("Bad") {
      parameter("w", {2}, nn::Init::constant(0), Role::weight, lr, decay);
    }
  };
  CHECK_THAT(error_of([] { Bad(-0.1, {}); }), contains("[module] expected finite factors of at least 0 for Bad.w, got "
                                                       "-0.1 for the learning rate and 1 for the decay"));
  CHECK_THAT(error_of([] { Bad({}, -1); }), contains("got 1 for the learning rate and -1 for the decay"));
  CHECK_THAT(error_of([] { Bad(std::nan(""), {}); }), contains("got nan for the learning rate"));
}
