// The first and second derivative of f(x) = x sin(x) at three points.
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  const auto f = [](const Tensor& x) { return x * sin(x); };          // any function, written in ops
  const auto d1 = grad([&](const Tensor& x) { return sum(f(x)); });   // the gradient of a function is a function
  const auto d2 = grad([&](const Tensor& x) { return sum(d1(x)); });  // and can be differentiated again
  const Tensor x = tensor({0, 1, 2});
  fmt::print("f   {}\nf'  {}\nf'' {}\n", f(x), d1(x), d2(x));
}
