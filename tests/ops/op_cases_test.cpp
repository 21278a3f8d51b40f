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

TEST_CASE("a fused op equals its composed definition, value and gradients") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    if (!c.composed) return;
    const Tensors fused = value_and_gradients(c.f, inputs_of(c, reference_f64)),
                  composed = value_and_gradients(c.composed, inputs_of(c, reference_f64));
    for (std::size_t i = 0; i < fused.size(); ++i) CHECK(relative_error(fused[i], composed[i]) < 1e-12);
  });
}

TEST_CASE("the second derivatives of a fused op equal those of its composed definition") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    if (!c.composed) return;
    const Tensors fused = second_gradients(c.f, inputs_of(c, reference_f64)),
                  composed = second_gradients(c.composed, inputs_of(c, reference_f64));
    for (std::size_t i = 0; i < fused.size(); ++i) CHECK(relative_error(fused[i], composed[i]) < 1e-11);
  });
  CHECK(live_nodes() == 0);
}

TEST_CASE("the second derivatives on the cpu agree with the reference in f32") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    const Tensors cpu = second_gradients(c.f, inputs_of(c, cpu_f32)),
                  reference = second_gradients(c.f, inputs_of(c, reference_f32));
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      INFO("input " << i);
      CHECK(relative_error(cpu[i], reference[i]) < 10 * c.f32_tolerance);
    }
  });
}

TEST_CASE("the second derivatives on cuda agree with the reference in f32") {
  PLUMB_REQUIRE_CUDA();
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    const Tensors cuda = second_gradients(c.f, inputs_of(c, cuda_f32)),
                  reference = second_gradients(c.f, inputs_of(c, reference_f32));
    for (std::size_t i = 0; i < cuda.size(); ++i) {
      INFO("input " << i);
      CHECK(relative_error(cuda[i], reference[i]) < 10 * c.f32_tolerance);
    }
  });
}

TEST_CASE("the recorded gradient equals the gradient that is not recorded") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    Tensors leaves;
    for (const Tensor& x : inputs_of(c, reference_f64)) leaves.push_back(variable(x));
    const Tensor y = sum(c.f(leaves) * 1.5);
    const Tensors plain = grad(y, leaves), recorded = grad(y, leaves, {.create_graph = true});
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(relative_error(recorded[i], plain[i]) < 1e-12);
  });
}

TEST_CASE("the cpu backend agrees with the reference in f32, value and gradients") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    const Tensors cpu = value_and_gradients(c.f, inputs_of(c, cpu_f32)),
                  reference = value_and_gradients(c.f, inputs_of(c, reference_f32));
    for (std::size_t i = 0; i < cpu.size(); ++i) {
      INFO("result " << i);
      CHECK(relative_error(cpu[i], reference[i]) < c.f32_tolerance);
    }
  });
}

TEST_CASE("the cuda backend agrees with the reference in f32, value and gradients") {
  PLUMB_REQUIRE_CUDA();
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    const Tensors cuda = value_and_gradients(c.f, inputs_of(c, cuda_f32)),
                  reference = value_and_gradients(c.f, inputs_of(c, reference_f32));
    for (std::size_t i = 0; i < cuda.size(); ++i) {
      INFO("result " << i);
      CHECK(cuda[i].device() == Device::cuda);
      CHECK(relative_error(cuda[i], reference[i]) < c.f32_tolerance);
    }
  });
}

TEST_CASE("the reference backend in f32 agrees with the reference backend in f64") {
  const RandomScope random(at_step_3);
  each_case([](const OpCase& c) {
    const Tensors single = value_and_gradients(c.f, inputs_of(c, reference_f32)),
                  twice = value_and_gradients(c.f, inputs_of(c, reference_f64));
    for (std::size_t i = 0; i < single.size(); ++i) CHECK(relative_error(single[i].values(), twice[i].values()) < 2e-5);
  });
}
