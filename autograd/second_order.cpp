// Hessian products by differentiating the gradient, and the Lanczos iteration.
#include "autograd/second_order.h"

#include <algorithm>
#include <cmath>

#include "autograd/backward.h"
#include "autograd/enable_grad.h"
#include "autograd/ops.h"
#include "core/backend.h"
#include "core/random.h"

namespace plumb {
namespace {

void check_alike(const char* op, const Tensors& a, const Tensors& b) {
  check(a.size() == b.size(), "[{}] expected equally many tensors on both sides, got {} and {}", op, a.size(),
        b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    detail::check_operands(op, a[i], b[i]);
    check(a[i].shape() == b[i].shape(), "[{}] expected tensors of the same shapes on both sides, got {} and {} at {}",
          op, a[i].shape(), b[i].shape(), i);
  }
}

template <class F>
Tensors each(const Tensors& x, F&& f) {
  Tensors y;
  for (std::size_t i = 0; i < x.size(); ++i) y.push_back(f(i));
  return y;
}

// The largest eigenvalue of a symmetric tridiagonal matrix and its eigenvector, whose elements are the
// coordinates in the Lanczos basis.
struct Ritz {
  double value;
  std::vector<double> vector;
};

// Returns the number of eigenvalues below x: the number of negative pivots of the matrix minus x.
int eigenvalues_below(const std::vector<double>& diagonal, const std::vector<double>& beside, double x) {
  int count = 0;
  double pivot = 1;
  for (std::size_t i = 0; i < diagonal.size(); ++i) {
    pivot = diagonal[i] - x - (i > 0 ? beside[i - 1] * beside[i - 1] / pivot : 0);
    if (pivot == 0) pivot = 1e-300;
    count += pivot < 0;
  }
  return count;
}

Ritz largest(const std::vector<double>& diagonal, const std::vector<double>& beside) {
  const std::size_t n = diagonal.size();
  double low = diagonal[0], high = diagonal[0];
  for (std::size_t i = 0; i < n; ++i) {  // bounds of the eigenvalues by Gershgorin's discs
    const double radius = (i > 0 ? std::abs(beside[i - 1]) : 0) + (i + 1 < n ? std::abs(beside[i]) : 0);
    low = std::min(low, diagonal[i] - radius);
    high = std::max(high, diagonal[i] + radius);
  }
  for (int i = 0; i < 200 && low < high; ++i) {
    const double middle = low + (high - low) / 2;
    if (middle == low || middle == high) break;
    (eigenvalues_below(diagonal, beside, middle) == static_cast<int>(n) ? high : low) = middle;
  }
  // Inverse iteration with a shift just above the eigenvalue. With this shift all pivots are negative, so that no rows
  // must be exchanged.
  const double scale = std::max({std::abs(low), std::abs(high), 1e-150}), shift = high + 1e-14 * scale;
  std::vector<double> v(n, 1), pivots(n);
  for (int pass = 0; pass < 4; ++pass) {
    for (std::size_t i = 0; i < n; ++i) {
      pivots[i] = diagonal[i] - shift - (i > 0 ? beside[i - 1] * beside[i - 1] / pivots[i - 1] : 0);
      if (pivots[i] > -1e-16 * scale) pivots[i] = -1e-16 * scale;
      if (i > 0) v[i] -= beside[i - 1] / pivots[i - 1] * v[i - 1];
    }
    for (std::size_t i = n; i-- > 0;) v[i] = (v[i] - (i + 1 < n ? beside[i] * v[i + 1] : 0)) / pivots[i];
    double squares = 0, most = 0;
    for (const double e : v) most = std::max(most, std::abs(e));
    for (double& e : v) {
      e /= most;
      squares += e * e;
    }
    for (double& e : v) e /= std::sqrt(squares);
  }
  return {low + (high - low) / 2, v};
}

}  // namespace

Tensor dot(const Tensors& a, const Tensors& b) {
  check_alike("dot", a, b);
  check(!a.empty(), "[dot] expected at least one tensor, got none");
  Tensor total;
  for (std::size_t i = 0; i < a.size(); ++i) {
    detail::check_alike("dot", a[0], a[i]);
    const Tensor part = sum(a[i] * b[i]);
    total = i == 0 ? part : total + part;
  }
  return total;
}

Tensors scale(const Tensors& x, double factor) {
  return each(x, [&](std::size_t i) { return x[i] * factor; });
}

Tensors add(const Tensors& x, const Tensors& y, double factor) {
  check_alike("add", x, y);
  return each(x, [&](std::size_t i) { return factor == 1 ? x[i] + y[i] : x[i] + y[i] * factor; });
}

double norm(const Tensors& x) {
  check(!x.empty(), "[norm] expected at least one tensor, got none");
  std::vector<Array> arrays;
  for (const Tensor& t : x) {
    detail::check_float("norm", t);
    check(t.device() == x[0].device(), "[norm] expected tensors on one device, got tensors on {} and {}",
          enum_name(x[0].device()), enum_name(t.device()));
    arrays.push_back(t.array());
  }
  return std::sqrt(sum_of_squares(arrays));
}

Tensors random_normal_like(const Tensors& x, std::uint64_t seed, std::string_view name) {
  return each(x, [&](std::size_t i) { return random_normal_like(x[i], seed, fmt::format("{}.{}", name, i)); });
}

HessianProduct::HessianProduct(const Tensor& loss, Tensors parameters)
    : parameters_(std::move(parameters)), gradient_(grad(loss, parameters_, {.create_graph = true})) {}

Tensors HessianProduct::operator()(const Tensors& v) const {
  check_alike("hvp", parameters_, v);
  const EnableGrad recording;
  Tensor along;  // <gradient, v> without the constant parts
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (!gradient_[i].requires_grad()) continue;
    const Tensor part = sum(gradient_[i] * v[i].detach());
    along = along.defined() ? along + part : part;
  }
  return along.defined() ? grad(along, parameters_) : each(v, [&](std::size_t i) { return zeros_like(v[i]); });
}

Tensors hvp(const Tensor& loss, const Tensors& parameters, const Tensors& v) {
  return HessianProduct(loss, parameters)(v);
}

// The Lanczos iteration: a basis q_0, q_1, .. in which A is tridiagonal, A q_k = beta_(k-1) q_(k-1) +
// alpha_k q_k + beta_k q_(k+1).
TopEigenvalue top_eigenvalue(const std::function<Tensors(const Tensors&)>& product, const Tensors& like,
                             const TopEigenvalueOptions& o) {
  check(!like.empty(), "[top_eigenvalue] expected at least one tensor, got none");
  check(o.tolerance >= 0 && o.products >= 1,
        "[top_eigenvalue] expected a tolerance of at least 0 and at least one product, got {} and {}", o.tolerance,
        o.products);
  const NoGrad no_grad;
  std::int64_t size = 0;
  for (const Tensor& x : like) size += x.numel();
  check(size > 0, "[top_eigenvalue] expected tensors with elements, got none");

  const Tensors start = random_normal_like(like, o.seed, "top_eigenvalue");
  std::vector<Tensors> basis{scale(start, 1 / norm(start))};
  std::vector<double> alpha, beta;
  for (;;) {
    Tensors w = product(basis.back());
    check_alike("top_eigenvalue", basis.back(), w);
    const double reach = norm(w);
    check(std::isfinite(reach), "[top_eigenvalue] expected finite products, got one of norm {} at product {}", reach,
          alpha.size() + 1);
    alpha.push_back(dot(w, basis.back()).item());
    // Two passes of orthogonalization are enough (Kahan, Parlett). The first pass also subtracts the alpha and beta
    // terms.
    for (int pass = 0; pass < 2; ++pass)
      for (const Tensors& q : basis) w = add(w, q, -dot(w, q).item());
    const double next = norm(w);
    const Ritz ritz = largest(alpha, beta);
    const auto taken = static_cast<int>(alpha.size());
    const double residual = next * std::abs(ritz.vector.back());
    const bool exhausted = taken == size || next <= 1e-7 * reach;  // only rounding errors remain in w
    const bool converged = exhausted || residual <= o.tolerance * std::abs(ritz.value);
    if (converged || taken == o.products) {
      Tensors vector = scale(basis[0], ritz.vector[0]);
      for (std::size_t k = 1; k < basis.size(); ++k) vector = add(vector, basis[k], ritz.vector[k]);
      return {.value = ritz.value,
              .vector = std::move(vector),
              .residual = residual,
              .products = taken,
              .converged = converged};
    }
    beta.push_back(next);
    basis.push_back(scale(w, 1 / next));
  }
}

TopEigenvalue top_eigenvalue(const Tensor& loss, const Tensors& parameters, const TopEigenvalueOptions& options) {
  return top_eigenvalue(HessianProduct(loss, parameters), parameters, options);
}

}  // namespace plumb
