// A custom op, written outside the library. A plain loop computes the value of the op. Ops compute the derivative, so
// that the op can be differentiated any number of times.
#include <plumb/plumb.h>

#include <cmath>
using namespace plumb;

Tensor atan(const Tensor& x) {
  std::vector<double> y = x.values();
  for (double& v : y) v = std::atan(v);
  return record("atan", array_from(y, x.shape(), x.dtype(), x.device()), {x},
                [x = Saved(x)](const Tensor& dy) { return Tensors{dy / (1 + x * x)}; });
}

int main() {
  const DefaultsScope f64({.dtype = DType::f64});
  const Tensor x = variable(tensor({-2, 0, 0.5, 3}, {4}));
  fmt::print("atan(x) = {}\nslope   = {}\n", atan(x), grad(sum(atan(x)), x));
  const double worst = check_gradients([](const Tensors& in) { return atan(in[0]) * in[0]; }, {x},
                                       {.order = 2});  // throws if a gradient is wrong
  fmt::print("gradients of order one and two: worst error {:.1e}\n", worst);
}
