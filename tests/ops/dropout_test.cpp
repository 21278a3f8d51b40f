#include "core/random.h"
#include "tests/support/catch.h"
#include "tests/support/op_case.h"

using namespace plumb;
using namespace plumb::test;

TEST_CASE("dropout of no samples gives no samples") {
  for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}, Shape{0}}) {
    const Tensor x = variable(zeros(shape)), y = dropout(x, 0.5);
    CHECK(y.shape() == shape);
    CHECK(grad(sum(y), x).shape() == shape);
  }
}

TEST_CASE("dropout rounds its probability to 16 bits and refuses one that rounds to 1") {
  const Tensor x = ones({1000});
  CHECK(dropout(x, 0x1p-18).values() == x.values());
  CHECK_THAT(error_of([&] { dropout(x, 1); }), contains("[dropout] expected a probability in [0, 1), got 1"));
  CHECK_THAT(error_of([&] { dropout(x, 0.999999); }),
             contains("[dropout] expected a probability of at most 1 - 2^-16, got 0.999999"));
  CHECK_THAT(error_of([&] { survivable_threshold("drop_path", "rate", -0.1); }),
             contains("[drop_path] expected a rate in [0, 1), got -0.1"));
  CHECK(survivable_threshold("drop_path", "rate", 1 - 0x1p-16) == 65535);
}
