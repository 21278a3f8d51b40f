// Gradients as a value: sums, multiples and lookup.
#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

Tensor named(const char* name, const Values& values) {
  const Tensor x = variable(tensor(values, {static_cast<std::int64_t>(values.size())}));
  x.node()->name = name;
  return x;
}

}  // namespace

TEST_CASE("the mean of the gradients of micro-batches is the gradient of the whole batch") {
  const Tensor w = named("w", {1, -2, 3}), x = random_normal({4, 3}, 1, "x");
  const auto loss = [&](const Tensor& rows) { return mean(tanh(linear(rows, reshape(w, {1, 3})))); };
  const Gradients whole = backward(loss(x));
  Gradients g;
  for (const Tensor& part : chunk(x, 2, 0)) {
    const double before = g.norm();  // the norm of the gradients so far
    g += backward(loss(part));
    CHECK(g.norm() != before);
  }
  const double twice = g.norm();
  g *= 0.5;
  CHECK(g.norm() == Approx(twice / 2));
  CHECK(g.loss() == Approx(whole.loss()));
  CHECK(g.norm() == Approx(whole.norm()));
  for (std::size_t i = 0; i < 3; ++i) CHECK(g["w"].values()[i] == Approx(whole["w"].values()[i]));
}

TEST_CASE("a sum of gradients matches entries by variable and keeps entries that one summand lacks") {
  const Tensor a = named("a", {1, 2}), b = named("b", {3, 4}), c = named("c", {5});
  const Gradients first = backward(sum(a * a) + sum(c)), second = backward(sum(a * b)), both = first + second;
  CHECK(both.loss() == 10 + 11);
  REQUIRE(both.entries().size() == 3);
  CHECK(both.entries()[0].name() == "a");  // entries have the order in which the variables were made
  CHECK(both.entries()[1].name() == "b");
  CHECK(both.entries()[2].name() == "c");
  CHECK(both["a"].values() == Values{2 + 3, 4 + 4});
  CHECK(both.find(b).values() == Values{1, 2});
  CHECK(both.find(c).values() == Values{1});
  CHECK((second + first)["a"].values() == both["a"].values());
  CHECK((second + first).entries()[2].name() == "c");
  // The two summands are unchanged.
  CHECK(first["a"].values() == Values{2, 4});
  CHECK(second["a"].values() == Values{3, 4});
  CHECK(first.loss() == 10);
}

TEST_CASE("a factor scales loss and entries but no shared buffers") {
  const Tensor a = named("a", {1, 2});
  Gradients g = backward(sum(a * a));
  const Tensor held = g["a"];
  const Gradients copy = g;
  g *= 3;
  CHECK(g.loss() == 15);
  CHECK(g["a"].values() == Values{6, 12});
  g += g;
  CHECK(g["a"].values() == Values{12, 24});
  CHECK(held.values() == Values{2, 4});
  CHECK(copy["a"].values() == Values{2, 4});
  CHECK((0.5 * copy)["a"].values() == Values{1, 2});
  CHECK((copy * 2)["a"].values() == Values{4, 8});
  CHECK((copy / 4).loss() == 1.25);
  CHECK(copy["a"].values() == Values{2, 4});
}

TEST_CASE("a buffer shared by two entries is scaled once") {
  const Tensor a = named("a", {1, 2}), b = named("b", {3, 4});
  Gradients g = backward(sum(a + b));  // a and b get the same dy
  g *= 2;
  CHECK(g["a"].values() == Values{2, 2});
  CHECK(g["b"].values() == Values{2, 2});
  g += backward(sum(a + b));
  CHECK(g["a"].values() == Values{3, 3});
  CHECK(g["b"].values() == Values{3, 3});
}

TEST_CASE("a sum of gradients starts from empty gradients") {
  const Gradients nothing;
  CHECK(nothing.loss() == 0);
  CHECK(nothing.norm() == 0);
  CHECK(nothing.entries().empty());
  const Tensor a = named("a", {1, 2});
  CHECK((nothing + backward(sum(a)))["a"].values() == Values{1, 1});
}
