// Mistakes with tensors and ops.
#include "autograd/autograd.h"
#include "tests/misuse/misuse.h"

using namespace plumb;

TEST_CASE("misuse: operands that cannot be broadcast") { CHECK_REFUSED(ones({2, 3}) + ones({4}), "[add] expected shapes that broadcast together"); }
