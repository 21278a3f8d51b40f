// Fused ops of tensors without elements: no samples, no rows, no inputs or no outputs.
#include <cmath>

#include "tests/support/catch.h"
#include "tests/support/cuda.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

namespace {

void check_zeros(const Tensor& x) {
  for (double v : x.values()) CHECK(v == 0);
}

// Checks linear() for each combination of rows, inputs and outputs with at least one size of 0.
void check_linear(Device device) {
  const DefaultsScope scope({.dtype = DType::f32, .device = device});
  for (std::int64_t R : {0, 2})
    for (std::int64_t K : {0, 8})
      for (std::int64_t N : {0, 3})
        for (bool normed : {false, true}) {
          if (R * K * N > 0 || (normed && K == 0)) continue;
          CAPTURE(R, K, N, normed);
          const Tensor x = variable(random_normal({R, K}, 1, "x")), w = variable(random_normal({N, K}, 1, "w")),
                       b = variable(random_normal({N}, 1, "b")), gamma = variable(ones({K})),
                       beta = variable(zeros({K}));
          const LinearFusion fusion = normed ? LinearFusion{.norm = {gamma, beta, 1e-5}} : LinearFusion{};
          const Tensor y = linear(x, w, b, fusion);
          CHECK(y.shape() == Shape{R, N});
          if (K == 0) CHECK(y.values() == broadcast_to(b, {R, N}).values());
          CHECK(linear_composed(x, w, b).shape() == Shape{R, N});
          const Tensors variables = normed ? Tensors{x, w, gamma, beta} : Tensors{x, w};
          for (const Tensor& g : grad(sum(y), variables)) check_zeros(g);
          const Tensors first = grad(sum(y * y), variables, {.create_graph = true});
          Tensor total = zeros({1});
          for (std::size_t i = 0; i < first.size(); ++i) {
            CHECK(first[i].shape() == variables[i].shape());
            total = total + sum(first[i] * first[i]);
          }
          for (const Tensor& g : grad(total, variables)) check_zeros(g);
        }
}

void check_residual_sum(Device device) {
  const DefaultsScope scope({.dtype = DType::f32, .device = device});
  const Tensor branch = variable(zeros({0, 4})), gate = variable(ones({4}));
  const Tensor y = gated_residual(zeros({0, 4}), branch, gate, ones({0}));
  CHECK(y.shape() == Shape{0, 4});
  check_zeros(grad(sum(y), gate));
}

}  // namespace

TEST_CASE("linear layers without rows, inputs or outputs") {
  check_linear(Device::reference);
  check_linear(Device::cpu);
}

TEST_CASE("linear layers without rows, inputs or outputs on cuda") {
  PLUMB_REQUIRE_CUDA();
  check_linear(Device::cuda);
}

TEST_CASE("residual sums without samples") {
  check_residual_sum(Device::reference);
  check_residual_sum(Device::cpu);
}

TEST_CASE("residual sums without samples on cuda") {
  PLUMB_REQUIRE_CUDA();
  check_residual_sum(Device::cuda);
}
