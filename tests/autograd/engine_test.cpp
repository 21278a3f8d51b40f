#include <cmath>
#include <thread>

#include "autograd/enable_grad.h"
#include "autograd/node.h"
#include "core/scope.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("a chain of a million nodes is built, differentiated and freed with an ordinary stack size") {
  {
    const Tensor x = variable(tensor({1.5}, {1}));
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i) y = y + 1e-6;
    CHECK(live_nodes() == 1'000'001);
    CHECK(grad(y, x).item() == 1);
    const Gradients g = backward(std::move(y));  // the walk consumes the graph
    CHECK(g.find(x).item() == 1);
  }
  CHECK(live_nodes() == 0);
  const Tensor x = variable(tensor({2}, {1}));
  Tensor y = x;
  for (int i = 0; i < 300'000; ++i) y = y * 1.0;
  y = Tensor();  // freed without being differentiated
  CHECK(live_nodes() == 1);
}

TEST_CASE("a graph with shared nodes adds up the gradients of every path") {
  const Tensor x = variable(tensor({3}, {1}));
  Tensor y = x;
  for (int i = 0; i < 20; ++i) y = y + y;  // 2^20 paths, 20 nodes
  CHECK(grad(y, x).item() == 1 << 20);
  const Tensor both = x * x + x * 2 + x;
  CHECK(grad(both, x).item() == 9);
}

TEST_CASE("gradients are looked up by name and by variable") {
  const Tensor a = variable(tensor({1, 2}, {2})), b = variable(tensor({3, 4}, {2})), constant = tensor({1, 1}, {2});
  a.node()->name = "a";
  b.node()->name = "b";
  const Gradients g = backward(sum(a * b + constant));
  CHECK(g.loss() == 13);
  CHECK(g["a"].values() == std::vector<double>{3, 4});
  CHECK(g.find(b).values() == std::vector<double>{1, 2});
  CHECK_FALSE(g.find(constant).defined());
  CHECK(g.norm() == Approx(std::sqrt(30.0)));
  CHECK_THAT(error_of([&] { g["c"]; }), contains("expected the name of a parameter") && contains("\"c\""));
}

TEST_CASE("derivatives can have any order") {
  const Defaults f64{DType::f64, Device::reference};
  const Tensor x = variable(tensor({0.7}, {1}, f64));
  Tensor y = tanh(x) * x;
  std::vector<double> derivatives;
  for (int order = 0; order < 4; ++order) {
    derivatives.push_back(y.item());
    y = grad(y, x, {.create_graph = true});
  }
  // The expected derivatives were computed by hand with t = tanh 0.7, s = 1 - t^2: xt, t + xs, 2s - 2xts, -6ts - 2xs^2
  // + 4xt^2 s.
  const double v = 0.7, t = std::tanh(v), s = 1 - t * t;
  CHECK(derivatives[0] == Approx(v * t));
  CHECK(derivatives[1] == Approx(t + v * s));
  CHECK(derivatives[2] == Approx(2 * s - 2 * v * t * s));
  CHECK(derivatives[3] == Approx(-6 * t * s - 2 * v * s * s + 4 * v * t * t * s));
}

TEST_CASE("grad with respect to an intermediate, several tensors and an unused one") {
  const Tensor x = variable(tensor({2}, {1})), z = variable(tensor({5}, {1}));
  const Tensor h = x * x, y = h * h + x;
  const Tensors g = grad(y, {h, x, z});
  CHECK(g[0].item() == 8);
  CHECK(g[1].item() == 33);
  CHECK(g[2].item() == 0);
  CHECK(grad(h, x, {.cotangent = tensor({10}, {1})}).item() == 40);
}

TEST_CASE("grad with respect to an intermediate does not differentiate beyond it") {
  int runs = 0;
  const Tensor x = variable(tensor({2}, {1}));
  const Tensor h = record("probe", x.array(), {x}, [&runs](const Tensor& dy) {
    ++runs;
    return Tensors{dy};
  });
  const Tensor y = h * h;
  CHECK(grad(y, h).item() == 4);
  CHECK(runs == 0);
  CHECK(grad(y, x).item() == 4);
  CHECK(runs == 1);
}

TEST_CASE("two threads differentiate graphs that share a parameter") {
  const Tensor w = variable(tensor({3}, {1}));
  double gradients[2] = {};
  const auto work = [&](int i) {
    Tensor y = w;
    for (int k = 0; k < 2000; ++k) y = y + w * static_cast<double>(i + 1);
    gradients[i] = backward(std::move(y)).find(w).item();
  };
  std::thread first(work, 0), second(work, 1);
  first.join(), second.join();
  CHECK(gradients[0] == 2001);
  CHECK(gradients[1] == 4001);
}

TEST_CASE("ops inside NoGrad are not recorded") {
  const Tensor x = variable(tensor({2}, {1}));
  {
    const NoGrad no_grad;
    CHECK_FALSE((x * x).requires_grad());
    const EnableGrad enable;
    CHECK((x * x).requires_grad());
  }
  CHECK((x * x).requires_grad());
  CHECK_FALSE((x * x).detach().requires_grad());
}

TEST_CASE("backward of an rvalue frees the graph, and backward of an lvalue keeps it") {
  const Tensor x = variable(tensor({2}, {1}));
  const Tensor h = x * x;
  Tensor loss = h * h;
  CHECK(backward(loss).find(x).item() == 32);
  CHECK(backward(loss).find(x).item() == 32);
  CHECK(backward(std::move(loss)).find(x).item() == 32);
  CHECK_THAT(error_of([&] { (void)grad(h, x); }),
             contains("[multiply] expected a graph to differentiate") && contains("consumed"));
}

TEST_CASE("an in-place change of a saved value is an error") {
  const Tensor x = variable(tensor({2}, {1})), w = variable(tensor({3}, {1}));
  const Tensor y = x * w;
  copy_into(tensor({4}, {1}).array(), w.array());
  CHECK_THAT(error_of([&] { (void)grad(y, x); }), contains("changed in place"));
  CHECK_NOTHROW(grad(x + w, x));  // an op that saves no value accepts the change
}

TEST_CASE("tensor hooks receive the complete gradient and may replace it") {
  const Tensor x = variable(tensor({2}, {1}));
  const Tensor h = x * 3.0;
  std::vector<double> seen;
  {
    const Handle watch = h.on_gradient([&](const Tensor& g) {
      seen.push_back(g.item());
      return Tensor();
    });
    const Handle twice = h.on_gradient([](const Tensor& g) { return g * 2.0; });
    CHECK(grad(h * h + h, x).item() == 2 * 3 * 13);
  }
  CHECK(seen == std::vector<double>{13});
  CHECK(grad(h * h + h, x).item() == 3 * 13);
  CHECK(seen.size() == 1);
  CHECK_THAT(error_of([&] { (void)tensor({1}, {1}).on_gradient([](const Tensor& g) { return g; }); }),
             contains("requires a gradient"));
}

TEST_CASE("assigning to a handle removes its old hook") {
  const Tensor x = variable(tensor({2}, {1}));
  int first = 0, second = 0;
  Handle handle = x.on_gradient([&](const Tensor&) { return ++first, Tensor(); });
  handle = x.on_gradient([&](const Tensor&) { return ++second, Tensor(); });
  (void)grad(x * 3.0, x);
  CHECK(first == 0);
  CHECK(second == 1);
}

TEST_CASE("anomaly mode names the first op that made a non-finite number, forward and backward") {
  const Tensor x = variable(tensor({1, -1, 4}, {3}));
  CHECK_NOTHROW(log(x));
  const AnomalyMode anomaly;
  const PathScope path(std::make_shared<const std::string>("ViT.blocks.3"));
  const PhaseScope phase("forward");
  const RandomScope random({.seed = 0, .step = 7});
  CHECK_THAT(error_of([&] { exp(log(x)); }), contains("[log] made 1 of 3 elements non-finite (first:") &&
                                                 contains("at 1)") && contains("0..1.39") &&
                                                 contains("in ViT.blocks.3, forward, step 7"));
  const Tensor y = sum(sqrt(x * x - 1.0));  // y is finite, but the derivative of the square root at 0 is infinite
  CHECK_THAT(error_of([&] { (void)grad(y, x); }), contains("[sqrt] made") && contains("backward"));
}

TEST_CASE("a graph without users is freed") {
  const std::size_t before = memory_stats().in_use;
  {
    const Tensor w = variable(random_normal({64, 64}, 0, "w"));
    for (int i = 0; i < 20; ++i) {
      const Tensor y = softmax(gelu(linear(random_normal({8, 64}, 0, "x"), w)));
      (void)grad(grad(sum(y * y), w, {.create_graph = true}), w,
                 {.cotangent = ones({64, 64})});  // the gradient has a graph too
      (void)backward(sum(y * y));
    }
    CHECK(live_nodes() == 1);
  }
  CHECK(live_nodes() == 0);
  CHECK(memory_stats().in_use == before);
}

TEST_CASE("a backward pass that consumes the graph frees activations on the way") {
  const auto peak_of = [](auto&& differentiate) {
    Tensors weights;
    for (int i = 0; i < 20; ++i) weights.push_back(variable(random_normal({256, 256}, 0, "w") * 0.05));
    Tensor y = random_normal({256, 256}, 0, "x");
    reset_peak_memory();
    const std::size_t before = memory_stats().in_use;
    for (const Tensor& w : weights) y = tanh(linear(y, w));
    Tensor loss = sum(y);
    y = Tensor();
    differentiate(loss);
    return memory_stats().peak - before;
  };
  const std::size_t kept = peak_of([](Tensor& loss) { (void)backward(loss); });
  const std::size_t consumed = peak_of([](Tensor& loss) { (void)backward(std::move(loss)); });
  CHECK(consumed * 4 < kept * 3);
}

TEST_CASE("messages about wrong shapes show both shapes") {
  const Tensor x = variable(tensor({1, 2, 3, 4, 5, 6}, {2, 3})), y = variable(tensor({1, 2}, {2}));
  CHECK_THAT(error_of([&] { linear(x, x, zeros({3})); }),
             contains("[linear] expected bias [2] for weight [2, 3], got [3]"));
  CHECK_THAT(error_of([&] {
               linear(x, x, zeros({2}, {DType::f64, Device::cpu}));
             }),
             contains("[linear] expected operands of one dtype"));
  CHECK_THAT(error_of([&] { linear(y, x); }), contains("[linear] expected input [.., 3] for weight [2, 3], got [2]"));
  CHECK_THAT(error_of([&] { layer_norm(x, y, y, 1e-6); }),
             contains("[layer_norm] expected input [.., 2] for weight [2] and bias [2], got [2, 3]"));
  CHECK_THAT(error_of([&] { slice(x, 1, 2, 4); }), contains("[slice]") && contains("got 2..4"));
  CHECK_THAT(error_of([&] { permute(x, {0, 0}); }), contains("axis 0 twice"));
  CHECK_THAT(error_of([&] { gated_residual(x, x, y); }), contains("[gated_residual] expected a gate [1], [3]"));
  CHECK_THAT(error_of([] { variable(Tensor()); }), contains("[variable] expected a value"));
}

TEST_CASE("check_gradients finds a wrong gradient of first or second order") {
  const Defaults f64{DType::f64, Device::reference};
  const Tensor x = random_normal({5}, 0, "x", f64);
  const auto cube = [](auto backward_of) {
    return [backward_of](const Tensors& in) {
      return record("cube", (in[0] * in[0] * in[0]).array(), {in[0]},
                    [=, x = Saved(in[0])](const Tensor& dy) { return Tensors{backward_of(dy, x)}; });
    };
  };
  CHECK(check_gradients(cube([](const Tensor& dy, const Tensor& v) { return dy * v * v * 3.0; }), {x}, {.order = 2}) <
        1e-7);
  CHECK_THAT(error_of([&] {
               check_gradients(cube([](const Tensor& dy, const Tensor& v) { return dy * v * v * 3.001; }), {x});
             }),
             contains("[check_gradients] expected derivative") && contains("of order 1 for input 0 [5], element 0"));
  // The value of the gradient is right, but the value is detached from the graph, so the second derivative is missing.
  CHECK_THAT(error_of([&] {
               check_gradients(
                   cube([](const Tensor& dy, const Tensor& v) { return dy * v.detach() * v.detach() * 3.0; }), {x},
                   {.order = 2});
             }),
             contains("of order 2"));
  CHECK_THAT(error_of([&] { check_gradients([](const Tensors& in) { return in[0]; }, {zeros({1})}); }),
             contains("expected f64 inputs, got f32"));
}
