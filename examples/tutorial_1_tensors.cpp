// Tutorial, page 1: fits a cubic to noisy samples of a sine by gradient descent, computes the sharpness of the loss,
// and checks a gradient.
#include <plumb/plumb.h>
using namespace plumb;

int main() {
  // Tensors
  const Tensor x = linspace(-1, 1, 64);
  const Tensor noise = random_normal({64}, /*seed=*/0, "noise");  // a function of the seed and the name
  const Tensor y = sin(3 * x) + 0.1 * noise;
  const Tensor powers = stack({ones_like(x), x, x * x, x * x * x}, 1);
  fmt::print("powers is {}, its first row {}\n", describe(powers), powers[0]);

  // Gradients
  const auto loss_at = [&](const Tensor& c) { return mse_loss(matmul(powers, c), y); };
  Tensor c = zeros({4});
  for (int step = 0; step <= 200; ++step) {
    const auto [loss, g] = value_and_grad(loss_at, c);
    if (step % 50 == 0)
      fmt::print("step {:>3}: loss {:.4f}, norm of the gradient {:.4f}\n", step, loss.item(), norm(g).item());
    c = c - 0.5 * g;
  }
  fmt::print("coefficients {}\n", c);

  // Second derivatives
  const Tensor at = variable(c);
  const TopEigenvalue sharpness = top_eigenvalue(loss_at(at), {at});
  fmt::print("sharpness {:.3f}: gradient descent diverges at learning rates above {:.3f}\n", sharpness.value,
             2 / sharpness.value);

  // A check against finite differences, in f64
  const DefaultsScope f64({.dtype = DType::f64});
  const double worst =
      check_gradients([](const Tensors& in) { return log_softmax(in[0]) * in[0]; }, {tensor({1, 2, 3})}, {.order = 2});
  fmt::print("gradients of order 1 and 2: largest error {:.0e}\n", worst);
}
