// The first and second derivative of f(x) = x sin(x) at three points.
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  const Tensor x = variable(tensor({0, 1, 2}));               // gradients are computed for variables
  const Tensor f = x * sin(x);                                // any function of x, written in ops
  const Tensor d1 = grad(sum(f), x, {.create_graph = true});  // create_graph: d1 can be differentiated again
  const Tensor d2 = grad(sum(d1), x);
  fmt::print("f   {}\nf'  {}\nf'' {}\n", f, d1, d2);
}
