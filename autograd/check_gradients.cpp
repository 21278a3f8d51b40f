// Gradients compared with central differences.
#include "autograd/check_gradients.h"

#include <cmath>

#include "autograd/backward.h"
#include "autograd/enable_grad.h"
#include "autograd/ops.h"
#include "core/random.h"

namespace plumb {
namespace {

using Function = std::function<Tensor(const Tensors&)>;

// Returns the numeric derivative of f along `direction` in input x.
double numeric_derivative(const Function& f, const Tensors& inputs, const Tensor& x,
                          const std::vector<double>& direction, double h) {
  const std::vector<double> at = x.values();
  const auto put = [&](const std::vector<double>& values) {
    copy_into(array_from(values, x.shape(), DType::f64, x.device()), x.array());
  };
  const auto moved = [&](double t) {
    std::vector<double> values = at;
    for (std::size_t i = 0; i < at.size(); ++i) values[i] += t * direction[i];
    put(values);
    return f(inputs).item();
  };
  const Array original = array_from(at, x.shape(), DType::f64, x.device());
  const auto restore = [&] { copy_into(original, x.array()); };
  try {
    const double derivative = (moved(h) - moved(-h)) / (2 * h);
    restore();
    return derivative;
  } catch (...) {
    restore();
    throw;
  }
}

// Returns the gradients of y, or zeros if y is a constant, such as the derivative of a linear function.
Tensors gradients_of(const Tensor& y, const Tensors& xs, bool create_graph) {
  if (y.requires_grad()) return grad(y, xs, {.create_graph = create_graph});
  Tensors zero;
  for (const Tensor& x : xs) zero.push_back(zeros_like(x));
  return zero;
}

// Checks a scalar function of leaves. Returns the largest error.
double check_scalar(const Function& f, const Tensors& leaves, int order, const CheckGradientsOptions& o) {
  const Tensor y = f(leaves);
  const Tensors gradients = gradients_of(y, leaves, false);
  double worst = 0;
  for (std::size_t k = 0; k < leaves.size(); ++k) {
    const std::vector<double> analytic = gradients[k].values();
    const bool elementwise = leaves[k].numel() <= o.elements;
    for (std::size_t i = 0; i < (elementwise ? analytic.size() : static_cast<std::size_t>(o.directions)); ++i) {
      std::vector<double> direction(analytic.size());
      if (elementwise)
        direction[i] = 1;
      else
        normal_draws(random_key(o.seed, fmt::format("direction.{}.{}.{}", order, k, i)), direction);
      double expected = 0;
      for (std::size_t j = 0; j < analytic.size(); ++j) expected += analytic[j] * direction[j];
      const double numeric = numeric_derivative(f, leaves, leaves[k], direction, o.step);
      const double error = std::abs(expected - numeric) / std::max(1.0, std::abs(numeric));
      check(error <= o.tolerance,
            "[check_gradients] expected derivative {:.9g} of order {} for input {} {}, {} {}, got {:.9g} (error "
            "{:.2g}, tolerance {:.2g})",
            numeric, order, k, leaves[k].shape(), elementwise ? "element" : "direction", i, expected, error,
            o.tolerance);
      worst = std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace

namespace {

void check_inputs(const Tensors& inputs) {
  for (const Tensor& x : inputs)
    check(x.defined() && x.dtype() == DType::f64, "[check_gradients] expected f64 inputs, got {}",
          x.defined() ? enum_name(x.dtype()) : "an undefined one");
}

double check_leaves(const Function& f, const Tensors& leaves, const CheckGradientsOptions& o) {
  check(o.order == 1 || o.order == 2, "[check_gradients] expected order 1 or 2, got {}", o.order);
  const EnableGrad grad_mode;
  const auto random_like = [&](const Tensor& x, const std::string& what) {
    return random_normal(x.shape(), o.seed, what, {x.dtype(), x.device()});
  };

  const Function scalar = [&](const Tensors& in) {
    const Tensor y = f(in);
    return sum(y * random_like(y, "cotangent"));
  };
  double worst = check_scalar(scalar, leaves, 1, o);
  if (o.order < 2) return worst;

  // The sum over all inputs of <gradient, random>. The gradients of this sum are second-order derivatives of f.
  const Function directional = [&](const Tensors& in) {
    const Tensors gradients = gradients_of(scalar(in), in, true);
    Tensor total = zeros({}, {in[0].dtype(), in[0].device()});
    for (std::size_t k = 0; k < in.size(); ++k)
      total = total + sum(gradients[k] * random_like(in[k], fmt::format("second.{}", k)));
    return total;
  };
  return std::max(worst, check_scalar(directional, leaves, 2, o));
}

}  // namespace

double check_gradients(const Function& f, const Tensors& inputs, const CheckGradientsOptions& o) {
  check_inputs(inputs);
  Tensors leaves;
  for (const Tensor& x : inputs) leaves.push_back(variable(x));
  return check_leaves(f, leaves, o);
}

double check_gradients(const std::function<Tensor()>& f, const Tensors& variables, const CheckGradientsOptions& o) {
  check_inputs(variables);
  for (const Tensor& x : variables)
    check(x.requires_grad(), "[check_gradients] expected variables, got a constant of shape {}", x.shape());
  return check_leaves([&f](const Tensors&) { return f(); }, variables, o);
}

}  // namespace plumb
