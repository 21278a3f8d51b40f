// Tensors and gradients without a module: Newton's method finds a minimum of f(x) = x^4 - 3 x^2 + x. The second
// derivative is the gradient of the first.
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::reference});
  Tensor x = variable(tensor({2.0}, {1}));
  for (int i = 0; i < 8; ++i) {
    const Tensor y = x * x * x * x - 3 * x * x + x;  // f(x)
    const Tensor slope = grad(y, x, {.create_graph = true});
    const Tensor curvature = grad(slope, x);
    fmt::print("x {:.12f}  f {:.12f}  f' {:+.3e}\n", x.item(), y.item(), slope.item());
    x = variable(x.detach() - slope.detach() / curvature);
  }
  fmt::print("check_gradients: worst error {:.1e}\n",
             check_gradients([](const Tensors& in) { return softmax(in[0]); }, {tensor({1, 2, 3}, {3})}, {.order = 2}));
  return 0;
}
