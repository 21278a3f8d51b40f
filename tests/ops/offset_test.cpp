// Logits with a common offset. Softmax, losses and gradients depend only on the differences of logits, also if the
// offset is so large that the logarithm of a sum is lost beside it.
#include <cmath>

#include "plumb/plumb.h"
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

using Values = std::vector<double>;

struct OffsetCase {
  const char* name;
  std::function<Tensor(const Tensor&)> f;  // of logits [2, 3]
  bool moves = false;                      // whether the value moves by the offset
};

std::vector<OffsetCase> offset_cases(Defaults where) {
  const Tensor weight = tensor({{0.3, -1.2, 0.7}, {1.1, 0.4, -0.6}}, where),
               target = tensor({{0.25, 0.5, 0.25}, {0.1, 0, 0.9}}, where), labels = integers({1, 2}, {2}, where.device);
  return {{"cross_entropy", [=](const Tensor& x) { return cross_entropy(x, labels); }},
          {"cross_entropy with smoothing", [=](const Tensor& x) { return cross_entropy(x, labels, 0.1); }},
          {"soft_cross_entropy", [=](const Tensor& x) { return soft_cross_entropy(x, target); }},
          {"cross_entropy_composed", [=](const Tensor& x) { return cross_entropy_composed(x, target); }},
          {"softmax", [=](const Tensor& x) { return sum(softmax(x) * weight); }},
          {"softmax_composed", [=](const Tensor& x) { return sum(softmax_composed(x) * weight); }},
          {"log_softmax", [=](const Tensor& x) { return sum(log_softmax(x) * weight); }},
          {"log_softmax of columns", [=](const Tensor& x) { return sum(log_softmax(x, 0) * weight); }},
          {"log_softmax_composed", [=](const Tensor& x) { return sum(log_softmax_composed(x) * weight); }},
          {"kl_div", [=](const Tensor& x) { return kl_div(log_softmax(x), target); }},
          {"logsumexp", [=](const Tensor& x) { return sum(logsumexp(x, -1) * slice(weight, 1, 0, 1)[0]); }, true},
          {"logsumexp of all", [=](const Tensor& x) { return logsumexp(x); }, true}};
}

// The value of f, its gradient, the same gradient from a recorded backward pass, and the second-order gradient.
Tensors results_of(const std::function<Tensor(const Tensor&)>& f, const Tensor& at) {
  const Tensor x = variable(at), y = f(x);
  const Tensor recorded = grad(f(x), x, {.create_graph = true});
  const Tensor direction = random_normal(at.shape(), 4, "direction", {at.dtype(), at.device()});
  return {y.detach(), grad(y, x), recorded.detach(), grad(sum(recorded * direction), x)};
}

// The differences of the logits are multiples of the spacing of numbers near the offset, so that adding the offset is
// exact.
void check_offsets(Device device) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Defaults where{dtype, device};
    const double offset = std::ldexp(1.0, dtype == DType::f32 ? 27 : 56),
                 tolerance = dtype == DType::f32 ? 1e-6 : 1e-14;
    for (const OffsetCase& c : offset_cases(where))
      for (const double spread : {0.0, 16.0})
        for (const double sign : {1.0, -1.0}) {
          CAPTURE(enum_name(dtype), c.name, spread, sign);
          const Tensor x = tensor({{0, 1, -1}, {1, 0, 1}}, where) * spread;
          const Tensors near = results_of(c.f, x), far = results_of(c.f, x + sign * offset);
          for (std::size_t i = c.moves ? 1 : 0; i < near.size(); ++i) {
            CAPTURE(i);
            CHECK(relative_error(far[i], near[i]) < tolerance);
          }
        }
  }
}

}  // namespace

TEST_CASE("results of logits do not depend on a common offset on the reference backend") {
  check_offsets(Device::reference);
}
TEST_CASE("results of logits do not depend on a common offset on cpu") { check_offsets(Device::cpu); }
TEST_CASE("results of logits do not depend on a common offset on cuda") {
  PLUMB_REQUIRE_CUDA();
  check_offsets(Device::cuda);
}

TEST_CASE("three equal logits are a uniform prediction at any size") {
  for (const Defaults where : everywhere)
    for (const double logit : {0.0, 1e4, 1e8, -1e8, 1e30}) {
      CAPTURE(enum_name(where.device), enum_name(where.dtype), logit);
      const Tensor x = variable(full({1, 3}, logit, where)), labels = integers({1}, {1}, where.device);
      const auto near = [](const Tensor& got, const Values& wanted) {
        return relative_error(got.values(), wanted) < 2e-7;
      };
      const Tensor loss = cross_entropy(x, labels);
      CHECK(near(loss, {std::log(3.0)}));
      const Values slopes{1.0 / 3, -2.0 / 3, 1.0 / 3};
      CHECK(near(grad(cross_entropy(x, labels), x), slopes));
      CHECK(near(grad(loss, x, {.create_graph = true}), slopes));
      CHECK(near(grad(logsumexp(x), x), {1.0 / 3, 1.0 / 3, 1.0 / 3}));
      CHECK(near(soft_cross_entropy(x, tensor({{0, 1, 0}}, where)), {std::log(3.0)}));
    }
}

TEST_CASE("a network in bf16 whose head adds 1e8 to each logit has the loss ln 3") {
  nn::ViT model({.image = 8, .patch = 4, .classes = 3, .dim = 16, .depth = 1, .heads = 2, .method = "pre"});
  nn::initialize(model, 0);
  for (const nn::Parameter& p : model.parameters())
    if (p.name == "head.bias") copy_into(full({3}, 1e8).array(), p.value.array());
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    const PrecisionScope scope(precision);
    const Tensor logits = model(random_normal({6, 3, 8, 8}, 0, "x"));
    CHECK(min(logits).item() > 9e7);
    CHECK(cross_entropy(logits, integers({0, 1, 2, 0, 1, 2})).item() == Approx(std::log(3.0)));
  }
}

TEST_CASE("binary cross-entropy of confident and right logits is small, not 0") {
  for (const Defaults where : everywhere) {
    const double loss = std::log1p(std::exp(-20.0)), slope = 1 / (1 + std::exp(20.0));
    for (const auto& [logit, target] : {std::pair{20.0, 1.0}, {-20.0, 0.0}}) {
      const Tensor x = variable(full({1}, logit, where));
      const Tensor y = binary_cross_entropy_with_logits(x, full({1}, target, where));
      CHECK(y.item() == Approx(loss).epsilon(1e-6));
      CHECK(grad(y, x).item() == Approx(logit > 0 ? -slope : slope).epsilon(1e-6));
    }
  }
}
