#include "autograd/node.h"
#include "core/scope.h"
#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

// A part of a model with dropout and DropKey that captures a parameter and an intermediate tensor of the outer graph.
Tensor part(const Tensor& x, const Tensor& w, const Tensor& outer) {
  const Tensor h = attention_qkv(linear(x, w), 2, {.drop_key = 0.4, .dropout = 0.2});
  return dropout(gelu(h), 0.3) * outer + x;
}

struct Result {
  double loss;
  std::vector<double> dx, dw, dscale;
};

Result run(bool checkpointed, bool create_graph) {
  const RandomScope random({.seed = 5, .step = 9});
  const PathScope path(std::make_shared<const std::string>("model.part"));
  const Defaults f64{DType::f64, Device::reference};
  const Tensor x = variable(random_normal({2, 5, 8}, 1, "x", f64)),
               w = variable(random_normal({24, 8}, 1, "w", f64) * 0.3), scale = variable(tensor({0.5}, {1}, f64));
  const Tensor outer = scale * scale;  // an intermediate tensor that is captured; w is used outside too
  const Tensor y =
      checkpointed ? checkpoint([&](const Tensors& in) { return part(in[0], w, outer); }, {x}) : part(x, w, outer);
  Tensor loss = sum(y * y) + sum(w * w) * 0.1;
  Tensors g = grad(loss, {x, w, scale}, {.create_graph = create_graph});
  if (create_graph) g = grad(sum(g[0] * g[0]) + sum(g[1] * g[1]) + sum(g[2]), {x, w, scale});
  return {loss.item(), g[0].values(), g[1].values(), g[2].values()};
}

}  // namespace

TEST_CASE("checkpointed gradients equal plain ones, including dropout and DropKey") {
  const Result plain = run(false, false), again = run(true, false);
  CHECK(plain.loss == again.loss);
  CHECK(plain.dx == again.dx);                        // equal bit for bit
  CHECK(relative_error(again.dw, plain.dw) < 1e-14);  // dw is the sum of two contributions, added in another order
  CHECK(relative_error(again.dscale, plain.dscale) < 1e-14);
}

TEST_CASE("a checkpointed part can be differentiated twice") {
  const Result plain = run(false, true), again = run(true, true);
  CHECK(relative_error(again.dx, plain.dx) < 1e-12);
  CHECK(relative_error(again.dw, plain.dw) < 1e-12);
  CHECK(relative_error(again.dscale, plain.dscale) < 1e-12);
}

TEST_CASE("hooks of captured tensors run once, and a captured tensor may be the result") {
  const Tensor x = variable(tensor({2}, {1})), w = variable(tensor({3}, {1}));
  int calls = 0;
  const Handle twice = w.on_gradient([&](const Tensor& g) {
    ++calls;
    return g * 2.0;
  });
  const Tensor y = checkpoint([&](const Tensors& in) { return in[0] * w; }, {x});
  CHECK(grad(y, w).item() == 2 * 2);
  CHECK(calls == 1);
  CHECK(grad(checkpoint([&](const Tensors&) { return w; }, {x}) * 5.0, w).item() == 2 * 5);
}

TEST_CASE("a checkpoint keeps no activations and leaves no nodes") {
  {
    const Tensor w = variable(random_normal({64, 64}, 1, "w"));
    const auto held = [&](bool checkpointed) {
      Tensor x = random_normal({256, 64}, 1, "x");
      const std::size_t before = memory_stats().in_use;
      const auto f = [&](const Tensors& in) {
        Tensor y = in[0];
        for (int i = 0; i < 8; ++i) y = tanh(linear(y, w));
        return y;
      };
      const Tensor y = checkpointed ? checkpoint(f, {x}) : f({x});
      return memory_stats().in_use - before;
    };
    CHECK(held(true) * 4 < held(false));
  }
  CHECK(live_nodes() == 0);
}
