// Reductions and ops along an axis: values, edge cases, ties.
#include <cmath>
#include <limits>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/not_finite.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

Values slopes_at(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  const Tensor x = variable(at);
  return grad(sum(f(x)), x).values();
}

}  // namespace

TEST_CASE("one axis can be given as a number") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 9}});
  CHECK(sum(x, -1).values() == Values{6, 18});
  CHECK(sum(x, 0).values() == Values{5, 7, 12});
  CHECK(sum(x, 0, true).shape() == Shape{1, 3});
  CHECK(sum(x, {}).item() == 24);  // {} is all axes, not axis 0
  CHECK(mean(x, -1).values() == Values{2, 6});
  CHECK(max(x, 1).values() == Values{3, 9});
  CHECK(var(x, -1).values() == var(x, {-1}).values());
}

TEST_CASE("prod: values, and exact derivatives next to zeros") {
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({{2, 0, 3}, {0, 5, 0}}, where);
    CHECK(prod(x, -1).values() == Values{0, 0});
    CHECK(prod(tensor({{2, -1, 3}, {1, 5, 2}}, where), 0, true).values() == Values{2, -5, 6});
    CHECK(prod(tensor({{2, -1, 3}, {1, 5, 2}}, where)).item() == -60);
    CHECK(slopes_at([](const Tensor& v) { return prod(v, -1); }, x) == Values{0, 6, 0, 0, 0, 0});
    CHECK(prod(zeros({2, 0}, where), -1).values() == Values{1, 1});
    CHECK(prod(zeros({0, 3}, where), -1).shape() == Shape{0});
    CHECK(prod(zeros({0}, where)).item() == 1);
    CHECK(prod(tensor(7.0, where)).item() == 7);
  }
}

TEST_CASE("stddev is the root of var, with derivatives of 0 where it is 0") {
  CHECK(stddev(tensor({1, 3, 5}), {}, false, 1).item() == Approx(2));
  CHECK(stddev(tensor({{1, 3}, {2, 2}}), -1).values()[0] == Approx(1));
  CHECK(stddev(tensor({{1, 3}, {2, 2}}), -1).values()[1] == 0);
  CHECK(slopes_at([](const Tensor& v) { return stddev(v); }, tensor({2, 2})) == Values{0, 0});
}

TEST_CASE("logsumexp does not overflow and is exact at infinities") {
  for (const Defaults where : everywhere) {
    CHECK(logsumexp(tensor({1000, 1000}, where)).item() == Approx(1000 + std::log(2.0)).epsilon(1e-6));
    CHECK(logsumexp(tensor({{-1000, -1000}, {0, 0}}, where), -1).values()[0] ==
          Approx(-1000 + std::log(2.0)).epsilon(1e-6));
    CHECK(logsumexp(tensor({{-infinity, -infinity}, {infinity, 0}, {0, -infinity}}, where), 1, true).values() ==
          Values{-infinity, infinity, 0});
    CHECK(std::isnan(logsumexp(tensor({not_a_number, 1.0}, where)).item()));
    CHECK(slopes_at([](const Tensor& v) { return logsumexp(v, -1); },
                    tensor({{-infinity, -infinity}, {3, -infinity}}, where)) == Values{0, 0, 1, 0});
  }
}

TEST_CASE("any and all: every dtype, NaN as not 0, and no elements") {
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({{0, 2, 0}, {0, 0, 0}, {1, not_a_number, -1}}, where);
    CHECK(any(x, -1).dtype() == DType::u8);
    CHECK(any(x, -1).values() == Values{1, 0, 1});
    CHECK(all(x, 1).values() == Values{0, 0, 1});
    CHECK(any(x, 0, true).shape() == Shape{1, 3});
    CHECK(all(x, {0}).values() == Values{0, 0, 0});
    CHECK(any(x).item() == 1);
    CHECK(all(x).item() == 0);
    CHECK(all(x > -5, {-1}).values() == Values{1, 1, 0});
    CHECK(any(zeros({2, 0}, where), -1).values() == Values{0, 0});
    CHECK(all(zeros({2, 0}, where), -1).values() == Values{1, 1});
  }
  CHECK(any(integers({0, 3})).item() == 1);
  CHECK(all(integers({0, 3})).item() == 0);
}

TEST_CASE("cumsum works along any axis") {
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}, where);
    CHECK(cumsum(x, -1).values() == Values{1, 3, 6, 4, 9, 15});
    CHECK(cumsum(x, 0).values() == Values{1, 2, 3, 5, 7, 9});
    CHECK(cumsum(zeros({2, 0}, where), 1).shape() == Shape{2, 0});
    CHECK(std::isnan(cumsum(tensor({1, not_a_number, 1}, where), 0).values()[2]));
    CHECK(cumsum(tensor({1, not_a_number, 1}, where), 0).values()[0] == 1);
    CHECK(slopes_at([](const Tensor& v) { return cumsum(v, 0); }, tensor({1, 2, 3}, where)) == Values{3, 2, 1});
  }
}

TEST_CASE("sort, argsort and topk: stable, NaN larger than all numbers, both directions") {
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({3, 1, not_a_number, 1, -infinity, 3}, where);
    CHECK(argsort(x).values() == Values{4, 1, 3, 0, 5, 2});
    CHECK(argsort(x, 0, true).values() == Values{2, 0, 5, 1, 3, 4});
    const Ordered up = sort(x);
    CHECK(up.indices.dtype() == DType::i64);
    CHECK(up.indices.values() == argsort(x).values());
    CHECK(up.values.values()[1] == 1);
    CHECK(topk(x, 3).indices.values() == Values{2, 0, 5});
    CHECK(topk(x, 3, -1, false).indices.values() == Values{4, 1, 3});
    CHECK(topk(x, 0).values.shape() == Shape{0});
    const Tensor m = tensor({{5, 1, 3}, {2, 6, 4}}, where);
    CHECK(sort(m).values.values() == Values{1, 3, 5, 2, 4, 6});
    CHECK(sort(m, 0, true).values.values() == Values{5, 6, 4, 2, 1, 3});
    CHECK(topk(m, 1, 0).indices.values() == Values{0, 1, 1});
    CHECK(topk(m, 2, 1).values.values() == Values{5, 3, 6, 4});
    CHECK(sort(zeros({0, 3}, where), 0).values.shape() == Shape{0, 3});
    CHECK(sort(zeros({3, 0}, where), 0).values.shape() == Shape{3, 0});
    CHECK_FALSE(argsort(variable(m)).requires_grad());
    CHECK(slopes_at([](const Tensor& v) { return topk(v, 1).values; }, m) == Values{1, 0, 0, 0, 1, 0});
  }
}

TEST_CASE("argmin: along any axis, the first of equal elements, the first NaN") {
  for (const Defaults where : everywhere) {
    const Tensor x = tensor({{5, 1, 1}, {2, 6, not_a_number}}, where);
    CHECK(argmin(x).values() == Values{1, 2});
    CHECK(argmin(x, 0, true).shape() == Shape{1, 3});
    CHECK(argmin(x, 0).values() == Values{1, 0, 1});
  }
}
