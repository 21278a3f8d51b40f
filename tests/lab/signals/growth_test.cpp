// The prediction of the stream's mean square in blocks of other numbers of junctions than two.
#include "experiments/lab/signals/growth.h"

#include "experiments/lab/signals/probe.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;
using nn::Growth;
using nn::Norm;

TEST_CASE("layers: the growth law repeats what the branches of a block add, with one branch or three") {
  using Values = std::vector<double>;
  const std::vector<Norm> pre(6, Norm::pre);
  CHECK(lab::predicted_mean_square(Growth::linear, pre, 2, {8}) == Values{10, 18, 26, 34, 42, 50});
  CHECK(lab::predicted_mean_square(Growth::linear, pre, 2, {8, 16, 1}) == Values{10, 26, 27, 35, 51, 52});
  CHECK(lab::predicted_mean_square(Growth::harmonic, pre, 2, {60}) == Values{62, 92, 112, 127, 139, 149});
  CHECK(lab::predicted_mean_square(Growth::harmonic, pre, 2, {6, 12, 18}) == Values{8, 20, 38, 41, 47, 56});
  // The first block has post-norm.
  CHECK(lab::predicted_mean_square(Growth::linear, {Norm::post, Norm::pre, Norm::pre}, 2, {8}) == Values{1, 9, 17});
  const std::vector<Norm> mixed{Norm::post, Norm::post, Norm::post, Norm::pre, Norm::pre, Norm::pre};
  CHECK(lab::predicted_mean_square(Growth::linear, mixed, 2, {8, 16, 1}) == Values{1, 1, 1, 9, 25, 26});
}

TEST_CASE("layers: a probe predicts linear growth for each junction of blocks of one and of three junctions") {
  const DefaultsScope f64(reference_f64);
  const std::vector<nn::BranchChoice> three{nn::mlp({.hidden = 12}), nn::mlp({.hidden = 4}).named("second"),
                                            nn::mlp({.hidden = 8}).named("third")};
  constexpr std::size_t depth = 3;
  constexpr std::int64_t tokens = 5, dim = 8;
  for (const std::size_t each : {1, 3}) {
    INFO(each << " junctions");
    nn::Stack stack({.dim = dim,
                     .depth = depth,
                     .method = "pre",
                     .junctions = {three.begin(), three.begin() + static_cast<std::ptrdiff_t>(each)}});
    nn::initialize(stack, 0);
    lab::SignalProbe probe(stack);
    (void)stack(random_normal({1, tokens, dim}, 0, "x"));
    const lab::LayerStats stats = probe.finish(Gradients(zeros({}), {}));
    REQUIRE(stats.branches.size() == depth * each);
    double expected = stats.input_mean_square;
    for (std::size_t i = 0; i < stats.branches.size(); ++i) {
      const double added = stats.branches[i % each].branch_norm;  // the norm of the only sample, in the first block
      CHECK(added > 0);
      expected += added * added / (tokens * dim);
      CHECK(stats.branches[i].predicted_mean_square == Approx(expected));
    }
  }
}
