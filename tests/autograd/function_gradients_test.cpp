// Gradients of functions: value_and_grad(f, x..) and grad(f), compared with closed forms, with gradients of tensors,
// with PyTorch and with finite differences.
#include <cmath>

#include "autograd/node.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

Tensor number(double value) { return tensor({value}, {}, reference_f64); }

}  // namespace

TEST_CASE("value_and_grad gives the value of a function and the gradient of tensors") {
  const DefaultsScope scope(reference_f64);
  const Tensor inputs = random_normal({5, 3}, 1, "inputs"), labels = integers({0, 1, 3, 2, 0}, {5}, Device::reference),
               weight = random_normal({3, 4}, 2, "weight");
  const auto [loss, g] =
      value_and_grad([&](const Tensor& w) { return cross_entropy(matmul(inputs, w), labels); }, weight);
  const Tensor w = variable(weight), expected = cross_entropy(matmul(inputs, w), labels);
  CHECK(loss.item() == expected.item());
  CHECK(g.values() == grad(expected, w).values());
  CHECK_FALSE(weight.requires_grad());
  CHECK_FALSE(loss.requires_grad());
  CHECK_FALSE(g.requires_grad());
}

TEST_CASE("the gradient has the form of the arguments: a tensor, an array of tensors or a list") {
  const Tensor a = tensor({1, 2}, {2}, reference_f64), b = tensor({3, 4}, {2}, reference_f64);
  const auto [value, by_both] = value_and_grad([](const Tensor& x, const Tensor& y) { return sum(x * x * y); }, a, b);
  static_assert(std::same_as<decltype(by_both), const std::array<Tensor, 2>>);
  CHECK(value.item() == 3 + 16);
  CHECK(by_both[0].values() == Values{6, 16});
  CHECK(by_both[1].values() == Values{1, 4});
  const auto [da, db] = grad([](const Tensor& x, const Tensor& y) { return sum(x * x * y); })(a, b);
  CHECK(da.values() == Values{6, 16});
  CHECK(db.values() == Values{1, 4});

  const auto of_list = [](const Tensors& x) { return sum(x[0] * x[0] * x[1]); };
  const auto [same, by_list] = value_and_grad(of_list, {a, b});
  static_assert(std::same_as<decltype(by_list), const Tensors>);
  CHECK(same.item() == value.item());
  CHECK(by_list[0].values() == Values{6, 16});
  CHECK(grad(of_list)(Tensors{a, b})[1].values() == Values{1, 4});
}

TEST_CASE("one tensor as two arguments has two gradients") {
  const Tensor x = variable(number(3));
  for (const Tensor& at : {x, x.detach()}) {
    const auto [left, right] = grad([](const Tensor& a, const Tensor& b) { return a * a * b; })(at, at);
    CHECK(left.item() == 18);
    CHECK(right.item() == 9);
  }
}

TEST_CASE("grad of grad of grad gives derivatives of the third order") {
  const auto f = [](const Tensor& x) { return exp(2 * x) + sin(x) + x * x * x; };
  const double at = 0.7, e = std::exp(2 * at), s = std::sin(at), c = std::cos(at);
  const Tensor x = number(at);
  const auto first = grad(f);
  const auto second = grad(first);
  const auto third = grad(second);
  CHECK(f(x).item() == Approx(e + s + at * at * at).epsilon(1e-14));
  CHECK(first(x).item() == Approx(2 * e + c + 3 * at * at).epsilon(1e-14));
  CHECK(second(x).item() == Approx(4 * e - s + 6 * at).epsilon(1e-14));
  CHECK(third(x).item() == Approx(8 * e - c + 6).epsilon(1e-14));
  CHECK(grad(third)(x).item() == Approx(16 * e + s).epsilon(1e-14));
  CHECK_FALSE(third(x).requires_grad());
}

TEST_CASE("a mutable lambda of two arguments has gradients of the first and the second order") {
  auto f = [calls = 0](const Tensor& x, const Tensor& y) mutable { return ++calls * x * x * y; };
  const Tensor x = number(3), y = number(5);
  const auto slopes = grad(f);
  CHECK(slopes(x, y)[0].item() == 30);
  CHECK(slopes(x, y)[0].item() == 60);                   // the second call of its copy of f
  CHECK(value_and_grad(f, x, y).second[1].item() == 9);  // the first call of f itself
  const auto [xx, xy] = grad([slopes](const Tensor& a, const Tensor& b) mutable { return slopes(a, b)[0]; })(x, y);
  CHECK(xx.item() == 3 * 2 * 5);  // the third call
  CHECK(xy.item() == 3 * 2 * 3);
}

TEST_CASE("derivatives of a constant and of a linear function are 0") {
  const Tensor x = number(3);
  CHECK(grad([](const Tensor&) { return ones({}, reference_f64); })(x).item() == 0);
  CHECK(grad(grad([](const Tensor& t) { return 5 * t; }))(x).item() == 0);
  CHECK(grad([](const Tensor& t) { return t; })(x).item() == 1);
  CHECK(grad([](const Tensor& t) { return sum(t.detach() * t.detach()); })(x).item() == 0);
}

// JAX 0.10.2 gave these numbers in float64, with
//   f = lambda x: jax.nn.logsumexp(x) + jnp.prod(jnp.tanh(x));  x = jnp.array([0.5, -1.0, 2.0])
//   jax.grad(f)(x);  jax.hessian(f)(x)
//   h = jax.grad(lambda y: jnp.sum(jax.grad(f)(y) ** 2));  jax.grad(lambda y: jnp.sum(h(y) ** 2))(x)
TEST_CASE("derivatives of orders 1, 2 and 3 equal those of JAX") {
  const Tensor x = tensor({0.5, -1, 2}, {3}, reference_f64);
  const auto f = [](const Tensor& t) {
    const Tensor h = tanh(t);
    return logsumexp(t, 0) + h[0] * h[1] * h[2];
  };
  const auto squared = [](const auto& of) { return [&of](const Tensor& t) { return sum(of(t) * of(t)); }; };
  const auto slope = grad(f);
  const auto h = grad(squared(slope));
  const auto third = grad(squared(h));
  CHECK(relative_error(slope(x), tensor({-0.40211778054203806, 0.22620849024822415, 0.7607317787200834}, {3},
                                        reference_f64)) < 1e-14);
  const Tensor hessian = stack(
      {grad([&](const Tensor& t) { return slope(t)[0]; })(x), grad([&](const Tensor& t) { return slope(t)[1]; })(x),
       grad([&](const Tensor& t) { return slope(t)[2]; })(x)},
      0);
  CHECK(relative_error(hessian, tensor({0.6782241172405034, 0.31155055664526526, -0.18002420622201445,
                                        0.31155055664526543, 0.32256509382938636, -0.01701499679371049,
                                        -0.18002420622201445, -0.017014996793710494, 0.21637591872089934},
                                       {3, 3}, reference_f64)) < 1e-14);
  CHECK(relative_error(third(x), tensor({-1.0849805332486209, -1.7461578067279582, -0.1479035337166401}, {3},
                                        reference_f64)) < 1e-13);
}

TEST_CASE("the product of the Hessian is the gradient of the slope along a direction") {
  const DefaultsScope scope(reference_f64);
  const nn::ViT model({.image = 8,
                       .patch = 4,
                       .channels = 1,
                       .classes = 3,
                       .dim = 8,
                       .depth = 2,
                       .heads = 2,
                       .method = "pre",
                       .seed = 1});
  const Tensor images = random_normal({3, 1, 8, 8}, 1, "images"), labels = integers({0, 2, 1}, {3}, Device::reference),
               v = random_normal({3, 1, 8, 8}, 2, "v");
  const auto loss = [&](const Tensor& x) { return cross_entropy(model(x), labels); };
  const Tensor product = grad([&](const Tensor& x) { return sum(grad(loss)(x) * v); })(images);
  const Tensor x = variable(images);
  CHECK(relative_error(product, hvp(loss(x), {x}, {v})[0]) < 1e-12);
}

TEST_CASE("a gradient of a function flows to variables that the function captures") {
  const Tensor w = variable(number(3));
  const auto slope = grad([&](const Tensor& x) { return w * w * x * x; });  // 2 w^2 x
  const Tensor at_5 = slope(number(5));
  CHECK(at_5.item() == 90);
  CHECK(grad(at_5, w).item() == 60);  // 4 w x
  CHECK(backward(at_5).find(w).item() == 60);
  const auto [value, g] =
      value_and_grad([&](const Tensor& x) { return w * x; }, number(5));  // the value keeps its graph
  CHECK(grad(value, w).item() == 5);
  CHECK(grad(g, w).item() == 1);
  const Tensor h = w * w;  // an intermediate result of the outer graph
  CHECK(grad(grad([&](const Tensor& x) { return h * x; })(number(5)), w).item() == 6);
}

TEST_CASE("a gradient of a function flows to a variable that is its argument") {
  const Tensor w = variable(number(3));
  const Tensor slope = grad([](const Tensor& x) { return x * x * x; })(w * w);  // 3 w^4
  CHECK(slope.item() == 243);
  CHECK(grad(slope, w).item() == 12 * 27);
  const auto [value, g] = value_and_grad([](const Tensor& x) { return x * x; }, w);
  CHECK(grad(value, w).item() == 6);
  CHECK(grad(g, w).item() == 2);
}

// Siskind and Pearlmutter 2005 call the wrong result, 2, a perturbation confusion.
TEST_CASE("the inner of two nested gradients treats the argument of the outer one as a constant") {
  const auto f = [](const Tensor& x) { return x * grad([&](const Tensor& y) { return x + y; })(x); };
  CHECK(grad(f)(number(1)).item() == 1);
  const auto g = [](const Tensor& x) { return x * grad([&](const Tensor& y) { return x * y * y; })(x); };  // 2 x^3
  CHECK(grad(g)(number(3)).item() == 54);
  CHECK(grad(grad(g))(number(3)).item() == 36);
}

TEST_CASE("check_gradients agrees with derivatives of orders 1, 2 and 3 of a function of several arguments") {
  const DefaultsScope scope(reference_f64);
  const Tensor x = random_normal({2, 3}, 1, "x"), w = random_normal({4, 3}, 2, "w"), b = random_normal({4}, 3, "b");
  const auto f = [](const Tensor& in, const Tensor& weight, const Tensor& bias) {
    return mean(softmax(linear(in, weight, bias)) * tanh(linear(in, weight)));
  };
  const double first = check_gradients([&](const Tensors& in) { return f(in[0], in[1], in[2]); }, {x, w, b});
  CHECK(first < 1e-8);
  const double higher = check_gradients(
      [&](const Tensors& in) {
        const auto [dx, dw, db] = grad(f)(in[0], in[1], in[2]);
        return cat({flatten(dx, 0), flatten(dw, 0), db}, 0);
      },
      {x, w, b}, {.order = 2});
  CHECK(higher < 1e-8);
}

TEST_CASE("inside a NoGrad, value_and_grad differentiates and returns constants") {
  const Tensor w = variable(number(3));
  const NoGrad no_grad;
  const auto [value, g] = value_and_grad([&](const Tensor& x) { return w * x * x; }, w);
  CHECK(value.item() == 27);
  CHECK(g.item() == 18);
  CHECK_FALSE(value.requires_grad());
  CHECK_FALSE(g.requires_grad());
  CHECK(grad(grad([](const Tensor& x) { return x * x * x; }))(w).item() == 18);
  CHECK_FALSE(grad_enabled());
}

TEST_CASE("a frozen variable that a function captures counts as a constant") {
  const Tensor w = variable(number(3));
  w.node()->frozen = true;
  const auto [value, g] = value_and_grad([&](const Tensor& x) { return w * x * x; }, number(5));
  CHECK(g.item() == 30);
  CHECK_FALSE(g.requires_grad());
  CHECK(grad([](const Tensor& x) { return x * x; })(w).item() == 6);
}

TEST_CASE("the gradient of a function of plain tensors leaves no graph behind") {
  const std::int64_t before = live_nodes();
  const auto [value, g] = value_and_grad([](const Tensor& x) { return sum(exp(x) * x); }, ones({4}));
  CHECK(live_nodes() == before);
}

TEST_CASE("steps of gradient descent can be differentiated with respect to their start") {
  const Tensor start = variable(number(1.5));
  Tensor x = start;
  for (int i = 0; i < 3; ++i) x = x - 0.1 * grad([](const Tensor& t) { return t * t * t * t; })(x);
  const auto at = [](double from) {
    for (int i = 0; i < 3; ++i) from -= 0.4 * from * from * from;
    return from;
  };
  CHECK(x.item() == Approx(at(1.5)).epsilon(1e-14));
  CHECK(grad(x, start).item() == Approx((at(1.5 + 1e-6) - at(1.5 - 1e-6)) / 2e-6).epsilon(1e-8));
}

TEST_CASE("a checkpointed part may differentiate a function with respect to a captured variable") {
  const DefaultsScope scope(reference_f64);
  const Tensor a = variable(tensor({2.0}, {1})), w = variable(tensor({3.0}, {1}));
  const auto slope = grad([](const Tensor& t) { return sum(t * t * t); });
  const auto part = [&](const Tensors& in) { return sum(in[0] * slope(w)); };  // a 3 w^2
  const Tensors g = grad(checkpoint(part, {a}), {a, w});
  CHECK(g[0].item() == 27);
  CHECK(g[1].item() == 36);
  CHECK(grad(checkpoint([&](const Tensors&) { return sum(slope(w)); }, {tensor({1.0}, {1})}), w).item() == 18);
}

TEST_CASE("the gradient with respect to no tensors is empty") {
  const Tensor x = variable(tensor({2.0}, {1}));
  CHECK(grad(x * x, Tensors()).empty());
}

TEST_CASE("a checkpointed part may contain the gradient of a function of captured variables") {
  const auto run = [](bool checkpointed) {
    const DefaultsScope scope(reference_f64);
    const Tensor x = variable(random_normal({3}, 1, "x")), w = variable(random_normal({3}, 2, "w"));
    const Tensor outer = w * w;
    const auto part = [&](const Tensors& in) {
      const auto [value, g] =
          value_and_grad([&](const Tensor& t) { return sum(t * t * t + w * w * w + tanh(t) * outer); }, in[0]);
      return value * g;
    };
    const std::int64_t before = live_nodes();
    const Tensor y = checkpointed ? checkpoint(part, {x}) : part({x});
    if (checkpointed) CHECK(live_nodes() == before + 1);
    Tensors g = grad(sum(y * y), {x, w}, {.create_graph = true});
    const Tensors second = grad(sum(g[0] * g[0]) + sum(g[1]), {x, w});
    g.insert(g.end(), second.begin(), second.end());
    return g;
  };
  const Tensors plain = run(false), again = run(true);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    CHECK(relative_error(again[i], plain[i]) < 1e-14);
    CHECK(norm(plain[i]).item() > 0);
  }
}
