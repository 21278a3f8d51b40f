// Every op case with extents of 0, and kernels of optimizers without elements. A call must give the same result on all
// backends, or an Error on all backends.
#include <algorithm>
#include <cmath>
#include <set>

#include "core/backend.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"
#include "tests/support/outcome.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// The shapes of a case with each extent that occurs replaced by 0 everywhere, and with each axis replaced alone. In
// further variants, another extent is 2^40: a tensor without elements can have any extents.
std::vector<std::vector<Shape>> variants_of(const OpCase& c) {
  const auto replaced = [](std::vector<Shape> shapes, std::int64_t from, std::int64_t to) {
    for (Shape& s : shapes)
      for (int axis = 0; axis < s.rank(); ++axis)
        if (s[axis] == from) s = s.with(axis, to);
    return shapes;
  };
  std::set<std::int64_t> extents;
  for (const Shape& s : c.shapes) extents.insert(s.begin(), s.end());
  std::vector<std::vector<Shape>> variants;
  for (const std::int64_t zero : extents) {
    const std::vector<Shape> empty = replaced(c.shapes, zero, 0);
    variants.push_back(empty);
    for (const std::int64_t large : extents) {
      if (large == zero) continue;
      try {
        variants.push_back(replaced(empty, large, std::int64_t{1} << 40));
      } catch (const Error&) {  // no tensor has this shape
      }
    }
  }
  for (std::size_t i = 0; i < c.shapes.size(); ++i)
    for (int axis = 0; axis < c.shapes[i].rank(); ++axis) {
      variants.push_back(c.shapes);
      variants.back()[i] = c.shapes[i].with(axis, 0);
    }
  return variants;
}

void check_cases(Device device) {
  const RandomScope random({.seed = 11, .step = 3});
  std::size_t results = 0;
  for (const OpCase& c : op_cases())
    for (const std::vector<Shape>& shapes : variants_of(c)) {
      INFO(c.name << ": " << fmt::format("{}", fmt::join(shapes, ", ")));
      OpCase empty = c;
      empty.shapes = shapes;
      for (const auto& derivatives : {value_and_gradients, second_gradients}) {
        const auto on = [&](Device d) {
          return outcome_of([&] { return derivatives(empty.f, inputs_of(empty, {DType::f32, d})); });
        };
        const Outcome got = on(device), wanted = on(Device::reference);
        check_agreement(got, wanted, 2e-4);
        results += !wanted.refused;
      }
    }
  CHECK(results > op_cases().size());  // not every call is refused
  CHECK(live_nodes() == 0);
}

// Checks that kernels of optimizers leave parameters without elements alone.
void check_optimizers(Device device) {
  const Array none(Shape{3, 0}, DType::f32, device), some = zeros({2}, {DType::f32, device}).array();
  const Kernels& k = kernels(device);
  const AdamWStep adamw{
      .lr = 1, .beta1 = 0, .beta2 = 0, .eps = 1, .weight_decay = 0, .correction1 = 1, .correction2 = 1};
  const std::vector<AdamWUpdate> adamw_updates{{adamw, none, Out(none), Out(none), Out(none)}};
  k.adamw(adamw_updates, Array());
  k.lamb(adamw_updates, Array());
  k.sgd(
      std::vector<SgdUpdate>{
          {{.lr = 1, .momentum = 0.5, .weight_decay = 0, .nesterov = false}, none, Out(none), Out(none)}},
      Array());
  k.adagrad(std::vector<AdagradUpdate>{{{.lr = 1, .eps = 1, .weight_decay = 0}, none, Out(none), Out(none)}}, Array());
  k.ema(0.5, std::vector<EmaUpdate>{{none, Out(none)}});
  CHECK(sum_of_squares(none) == 0);
  CHECK(sum_of_squares(std::vector<Array>{none, some, none}) == 0);
}

}  // namespace

TEST_CASE("every op with extents of 0 gives the result of the reference backend or an error on cpu", "[once]") {
  check_cases(Device::cpu);
}

TEST_CASE("every op with extents of 0 gives the result of the reference backend or an error on cuda", "[once]") {
  PLUMB_REQUIRE_CUDA();
  check_cases(Device::cuda);
}

TEST_CASE("optimizers accept parameters without elements") {
  check_optimizers(Device::reference);
  check_optimizers(Device::cpu);
}

TEST_CASE("optimizers accept parameters without elements on cuda") {
  PLUMB_REQUIRE_CUDA();
  check_optimizers(Device::cuda);
}

TEST_CASE("sums over an axis of extent 0 are 0 for any number of rows") {
  for (const Defaults where : everywhere)
    for (const std::int64_t rows : {1, 7, 8, 600})
      for (const std::int64_t columns : {1, 3, 33}) {
        CAPTURE(enum_name(where.device), rows, columns);
        CHECK(sum(zeros({rows, 0, columns}, where), 1).values() ==
              std::vector<double>(static_cast<std::size_t>(rows * columns), 0));
      }
}

TEST_CASE("a linear layer without inputs gives its bias") {
  for (const Defaults where : everywhere) {
    const Tensor bias = random_normal({3}, 1, "bias", where);
    CHECK(linear(zeros({2, 0}, where), zeros({3, 0}, where), bias).values() == broadcast_to(bias, {2, 3}).values());
  }
}

TEST_CASE("rows of width 0 can be chosen and added by index") {
  for (const Defaults where : everywhere) {
    CAPTURE(enum_name(where.device));
    const Tensor x = variable(zeros({3, 0}, where)), first = integers({0}, {1}, where.device);
    CHECK(grad(sum(index_select(x, 0, first)), x).shape() == Shape{3, 0});
    CHECK(grad(sum(embedding(first, x)), x).shape() == Shape{3, 0});
    CHECK(grad(sum(gather(x, first)), x).shape() == Shape{3, 0});
    CHECK(scatter_add(x, 0, integers({}, {1, 0}, where.device), zeros({1, 0}, where)).shape() == Shape{3, 0});
  }
}
