// The mean squared singular value of a Jacobian, exactly or by random cotangents.
#include "autograd/jacobian.h"

#include <algorithm>
#include <cmath>

#include "autograd/backward.h"
#include "autograd/enable_grad.h"
#include "core/random.h"

namespace plumb {
namespace {

std::vector<double> signs(std::int64_t count, std::uint64_t key) {
  std::vector<double> v(static_cast<std::size_t>(count));
  normal_draws(key, v);
  for (double& e : v) e = e < 0 ? -1 : 1;
  return v;
}

}  // namespace

Estimate mean_squared_singular_value(const std::function<Tensor(const Tensor&)>& f, const Tensor& input,
                                     const JacobianOptions& o) {
  check(o.exact_limit >= 0 && o.probes >= 2,
        "[jacobian] expected an exact_limit of at least 0 and at least 2 probes, got {} and {}", o.exact_limit,
        o.probes);
  check(input.defined() && is_float(input.dtype()) && input.numel() > 0,
        "[jacobian] expected a floating input with elements, got {}",
        input.defined() ? fmt::format("{} {}", enum_name(input.dtype()), input.shape()) : "an undefined one");
  const EnableGrad recording;
  const Tensor x = variable(input), y = f(x);
  check(y.defined() && is_float(y.dtype()) && y.numel() > 0,
        "[jacobian] expected a floating result with elements, got {}",
        y.defined() ? fmt::format("{} {}", enum_name(y.dtype()), y.shape()) : "an undefined one");

  if (!y.requires_grad()) return {};  // f does not depend on x

  const auto squared_norm = [&](const std::vector<double>& v) {  // returns ||J^T v||^2
    double sum = 0;
    for (double g : grad(y, x, {.cotangent = tensor(v, y.shape(), {y.dtype(), y.device()})}).values()) sum += g * g;
    return sum;
  };
  const auto singular_values = static_cast<double>(std::min(x.numel(), y.numel()));
  double total = 0;
  if (y.numel() <= o.exact_limit) {
    std::vector<double> one(static_cast<std::size_t>(y.numel()));
    for (double& e : one) {
      e = 1;
      total += squared_norm(one);
      e = 0;
    }
    return {.value = total / singular_values};
  }
  std::vector<double> draws;
  for (std::int64_t i = 0; i < o.probes; ++i) {
    draws.push_back(squared_norm(signs(y.numel(), random_key(o.seed, fmt::format("jacobian.{}", i)))) /
                    singular_values);
    total += draws.back();
  }
  const auto n = static_cast<double>(o.probes);
  const double mean = total / n;
  double squares = 0;
  for (double d : draws) squares += (d - mean) * (d - mean);
  return {.value = mean, .standard_error = std::sqrt(squares / (n * (n - 1))), .exact = false};
}

}  // namespace plumb
