// Ops and bf16: cast() converts to and from bf16, and other ops refuse it.
#include "autograd/backward.h"
#include "autograd/debug.h"
#include "autograd/ops.h"
#include "tests/support/catch.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("cast to bf16 rounds values and gradients and is recorded") {
  for (Device device : {Device::reference, Device::cpu})
    for (DType dtype : {DType::f32, DType::f64}) {
      const Defaults where{dtype, device};
      const Tensor x = variable(tensor({1.001, -3.14159, 1e-3, 65504}, {4}, where)), y = cast(x, DType::bf16);
      CHECK(y.dtype() == DType::bf16);
      CHECK(y.requires_grad());
      CHECK(y.values() == std::vector<double>{1, -3.140625, 0.00099945068359375, 65536});
      const Tensor weights = tensor({1.001, 2, -3, 1e-3}, {4}, where);
      const Tensor dx = grad(sum(cast(y, dtype) * weights), x);
      CHECK(dx.dtype() == dtype);
      CHECK(dx.values() == std::vector<double>{1, 2, -3, 0.00099945068359375});  // the gradient of y is bf16, like y
      CHECK(cast(y, DType::bf16).node() == y.node());
    }
}

TEST_CASE("ops that do not take bf16 say so and suggest cast()") {
  const Tensor x = ones({2, 3}, {DType::bf16, Device::cpu}), labels = integers({1}, {1});
  CHECK_THAT(error_of([&] { exp(x); }), contains("[exp] expected f32 or f64, got bf16 [2, 3]: cast() it to f32 first"));
  CHECK_THAT(error_of([&] { x + x; }), contains("[add] expected f32 or f64, got bf16 [2, 3]: cast() it to f32 first"));
  CHECK_THAT(error_of([&] { softmax(x); }), contains("[softmax] expected f32 or f64, got bf16"));
  CHECK_THAT(error_of([&] { variable(x); }), contains("[variable] expected f32 or f64, got bf16"));
  CHECK_THAT(error_of([&] { exp(labels); }),
             contains("[exp] expected f32 or f64, got i64 [1]: cast() it to f32 first"));
  CHECK_THAT(error_of([&] { cast(x, DType::i64); }), contains("[cast] expected f32, f64 or bf16 to cast to, got i64"));
  CHECK_THAT(error_of([&] { cast(Tensor(), DType::bf16); }),
             contains("[cast] expected a tensor, got an undefined tensor (from Gradients::find()"));
}

TEST_CASE("integers and masks are cast to floating dtypes without a gradient") {
  for (Device device : {Device::reference, Device::cpu}) {
    const Tensor labels = integers({3, 0, -7}, {3}, device), mask = labels >= 0;
    for (DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      CHECK(cast(labels, dtype).dtype() == dtype);
      CHECK(cast(labels, dtype).values() == std::vector<double>{3, 0, -7});
      CHECK(cast(mask, dtype).values() == std::vector<double>{1, 1, 0});
      CHECK_FALSE(cast(mask, dtype).requires_grad());
    }
  }
}

TEST_CASE("anomaly mode finds non-finite numbers in bf16") {
  const AnomalyMode on;
  const Tensor x = tensor({1, 3.4e38}, {2}, {DType::f32, Device::cpu});
  CHECK_THAT(error_of([&] { cast(x, DType::bf16); }),
             contains("[cast] made 1 of 2 elements non-finite (first: inf at 1)"));
}
