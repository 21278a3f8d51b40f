// The makers of constants: sequences, matrices, random numbers, nested lists.
#include <algorithm>
#include <cmath>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

}  // namespace

TEST_CASE("nested lists become tensors of the same shape") {
  CHECK(tensor({{1, 2}, {3, 4}, {5, 6}}).shape() == Shape{3, 2});
  CHECK(tensor({{1, 2}, {3, 4}}).values() == Values{1, 2, 3, 4});
  CHECK(tensor({1.5, 2}).shape() == Shape{2});
  CHECK(tensor({{{1}, {2}}}).shape() == Shape{1, 2, 1});
  CHECK(tensor({{1}}).shape() == Shape{1, 1});
  CHECK(tensor(5).shape() == Shape{});
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({{}, {}}).shape() == Shape{2, 0});
  CHECK(tensor({1, 2}, reference_f64).dtype() == DType::f64);
  CHECK(tensor({1, 2}, reference_f64).device() == Device::reference);
  CHECK(tensor({2}, {}).shape() == Shape{});  // the arguments are values and a shape
  CHECK(integers({{1, 2}, {3, 4}}).dtype() == DType::i64);
  CHECK(integers({{1, 2}, {3, 4}}).values() == Values{1, 2, 3, 4});
  CHECK(integers({1, 2}, Device::reference).device() == Device::reference);
  CHECK(integers({(std::int64_t{1} << 53) + 1}).array().data<std::int64_t>()[0] == (std::int64_t{1} << 53) + 1);
}

TEST_CASE("arange and linspace: integers, real numbers and both ends") {
  CHECK(arange(4).dtype() == DType::i64);
  CHECK(arange(4).values() == Values{0, 1, 2, 3});
  CHECK(arange(2, 5).values() == Values{2, 3, 4});
  CHECK(arange(7, 0, -3).values() == Values{7, 4, 1});
  CHECK(arange(0).shape() == Shape{0});
  CHECK(arange(5.0).dtype() == DType::f32);
  CHECK(arange(2.5).values() == Values{0, 1, 2});
  CHECK(arange(2.0, reference_f64).device() == Device::reference);
  CHECK_THAT(error_of([] { arange(-1.0); }), contains("[arange] expected a step that leads from 0 towards -1, got 1"));
  CHECK(arange(3, 3).shape() == Shape{0});
  CHECK(arange(0.0, 1.0, 0.25).dtype() == DType::f32);
  CHECK(arange(0.0, 1.0, 0.25).values() == Values{0, 0.25, 0.5, 0.75});
  CHECK(arange(0, 1, 0.5, reference_f64).values() == Values{0, 0.5});
  CHECK(arange(3.0, 1.0, -1).values() == Values{3, 2});
  CHECK(arange(2.0, 5).values() == Values{2, 3, 4});
  CHECK(arange(2, Device::reference).device() == Device::reference);
  CHECK(linspace(0, 1, 5).values() == Values{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(1, -1, 3, reference_f64).values() == Values{1, 0, -1});
  CHECK(linspace(0.1, 0.7, 7, reference_f64).values().back() == 0.7);
  CHECK(linspace(3, 4, 1).values() == Values{3});
  CHECK(linspace(3, 4, 0).shape() == Shape{0});
}

TEST_CASE("eye, one_hot and full_like fill in the right values") {
  CHECK(eye(2).values() == Values{1, 0, 0, 1});
  CHECK(eye(2, 3).values() == Values{1, 0, 0, 0, 1, 0});
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK(one_hot(integers({2, 0}), 3).values() == Values{0, 0, 1, 1, 0, 0});
  CHECK(one_hot(integers({{2, 0}}), 3, DType::f64).shape() == Shape{1, 2, 3});
  CHECK(one_hot(integers({{2, 0}}), 3, DType::f64).dtype() == DType::f64);
  CHECK(one_hot(integers({}, {0}), 3).shape() == Shape{0, 3});
  const Tensor like = full_like(zeros({2}, reference_f64), 3);
  CHECK(like.values() == Values{3, 3});
  CHECK(like.dtype() == DType::f64);
  CHECK(full_like(integers({1, 2}), 7).dtype() == DType::i64);
  CHECK_FALSE(full_like(variable(ones({2})), 3).requires_grad());
}

TEST_CASE("draws depend on seed, name and element only, and have the right distribution") {
  const Tensor u = random_uniform({4099}, -2, 3, 1, "u", reference_f64);
  const Values values = u.values();
  CHECK(*std::ranges::min_element(values) >= -2);
  CHECK(*std::ranges::max_element(values) <= 3);
  CHECK(mean(u).item() == Approx(0.5).margin(4 * 5 / std::sqrt(12.0 * 4099)));
  CHECK(var(u).item() == Approx(25.0 / 12).epsilon(0.06));
  CHECK(random_uniform({4099}, -2, 3, 1, "u", reference_f64).values() == values);
  CHECK(random_uniform({4099}, -2, 3, 2, "u", reference_f64).values() != values);
  CHECK(random_uniform({4099}, -2, 3, 1, "v", reference_f64).values() != values);
  const Values head = random_uniform({7}, -2, 3, 1, "u", reference_f64).values();
  CHECK(std::ranges::equal(head, std::span(values).first(7)));

  const Tensor x = zeros({3, 2}, reference_f64);
  CHECK(random_normal_like(x, 5, "n").values() == random_normal({3, 2}, 5, "n", reference_f64).values());
  CHECK(random_normal_like(x, 5, "n").device() == Device::reference);

  const Tensor p = random_permutation(1000, 1, "p");
  CHECK(p.dtype() == DType::i64);
  CHECK(sort(cast(p, DType::f64)).values.values() == arange(1000).values());
  CHECK(p.values() != arange(1000).values());
  CHECK(random_permutation(1000, 1, "p").values() == p.values());
  CHECK(random_permutation(1000, 2, "p").values() != p.values());
  CHECK(random_permutation(0, 1, "p").shape() == Shape{0});
  CHECK(random_permutation(1, 1, "p").values() == Values{0});
}
