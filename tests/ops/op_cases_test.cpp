// The op cases of tests/support/op_case.cpp, each run on all backends and for all orders of derivatives.
#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

const RandomState at_step_3{.seed = 11, .step = 3};

template <class F>
void each_case(F&& f) {
  for (const OpCase& c : op_cases()) {
    INFO(c.name);
    try {
      f(c);
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

// Checks that corresponding results differ by less than `limit`, relative to the largest element.
void check_close(const Tensors& got, const Tensors& expected, double limit) {
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("result " << i);
    CHECK(relative_error(got[i].values(), expected[i].values()) < limit);
  }
}

// Compares the results of a device in f32 with those of the reference backend: the value and the gradients, and the
// second derivatives.
void check_device(Device device) {
  const RandomScope random(at_step_3);
  each_case([&](const OpCase& c) {
    const Tensors got = value_and_gradients(c.f, inputs_of(c, {DType::f32, device}));
    for (const Tensor& x : got) CHECK(x.device() == device);
    check_close(got, value_and_gradients(c.f, inputs_of(c, reference_f32)), c.f32_tolerance);
    check_close(second_gradients(c.f, inputs_of(c, {DType::f32, device})),
                second_gradients(c.f, inputs_of(c, reference_f32)), 10 * c.f32_tolerance);
  });
}

}  // namespace

TEST_CASE("gradients of order one and two agree with finite differences in f64 on the reference backend") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    std::int64_t elements = 0;
    for (const Shape& s : c.shapes) elements += s.numel();
    check_gradients(c.f, inputs_of(c, reference_f64), {.order = elements > 3000 ? 1 : 2, .tolerance = 2e-6});
    SUCCEED();
  });
  CHECK(live_nodes() == 0);
}

TEST_CASE("a fused op equals its composed definition: value, gradients and second derivatives") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    if (!c.composed) return;
    const Tensors inputs = inputs_of(c, reference_f64);
    check_close(value_and_gradients(c.f, inputs), value_and_gradients(c.composed, inputs), 1e-12);
    check_close(second_gradients(c.f, inputs), second_gradients(c.composed, inputs), 1e-11);
  });
  CHECK(live_nodes() == 0);
}

TEST_CASE("the recorded gradient equals the gradient that is not recorded") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    Tensors leaves;
    for (const Tensor& x : inputs_of(c, reference_f64)) leaves.push_back(variable(x));
    const Tensor y = sum(c.f(leaves) * 1.5);
    check_close(grad(y, leaves, {.create_graph = true}), grad(y, leaves), 1e-12);
  });
}

TEST_CASE("the cpu backend agrees with the reference in f32: value, gradients and second derivatives") {
  check_device(Device::cpu);
}

TEST_CASE("the cuda backend agrees with the reference in f32: value, gradients and second derivatives") {
  PLUMB_REQUIRE_CUDA();
  check_device(Device::cuda);
}

TEST_CASE("the reference backend in f32 agrees with the reference backend in f64") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    check_close(value_and_gradients(c.f, inputs_of(c, reference_f32)),
                value_and_gradients(c.f, inputs_of(c, reference_f64)), 2e-5);
  });
}
