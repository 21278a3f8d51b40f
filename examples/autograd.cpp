// Gradients without a module: Newton's method finds a minimum of f(x) = x^4 - 3 x^2 + x. The second derivative is the
// gradient of the first.
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  const DefaultsScope f64({.dtype = DType::f64, .device = Device::reference});
  const auto f = [](const Tensor& x) { return x * x * x * x - 3 * x * x + x; };
  const auto curvature = grad(grad(f));
  Tensor x = tensor(2.0);
  for (int i = 0; i < 8; ++i) {
    const auto [y, slope] = value_and_grad(f, x);
    fmt::print("x {:.12f}  f {:.12f}  f' {:+.3e}\n", x.item(), y.item(), slope.item());
    x = x - slope / curvature(x);
  }
  fmt::print("check_gradients: worst error {:.1e}\n",
             check_gradients([](const Tensors& in) { return softmax(in[0]); }, {tensor({1, 2, 3}, {3})}, {.order = 2}));
  return 0;
}
