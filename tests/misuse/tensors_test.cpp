// Mistakes with tensors and ops.
#include "plumb/plumb.h"
#include "tests/misuse/misuse.h"

using namespace plumb;

// x[0] = y would change a temporary handle that is destroyed at once (see does_not_compile.cpp).
static_assert(!std::is_assignable_v<Tensor, Tensor> && !std::is_assignable_v<Tensor, const Tensor&>);
static_assert(std::is_assignable_v<Tensor&, Tensor> && std::is_assignable_v<Tensor&, const Tensor&>);
static_assert(std::is_nothrow_move_constructible_v<Tensor> && std::is_copy_constructible_v<Tensor>);

TEST_CASE("misuse: operands that cannot be broadcast") {
  CHECK_REFUSED(ones({2, 3}) + ones({4}), "[add] expected shapes that broadcast together");
}
