// Second derivatives: exact products with the Hessian, and its largest eigenvalue. A list of tensors represents one
// vector, such as the parameters of a model, their gradients, or a direction.
//
//   const Tensors parameters = model.trainable();
//   const Tensors hv = hvp(loss, parameters, v);
//   const TopEigenvalue sharpness = top_eigenvalue(loss, parameters);
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// ---- vectors of tensors
// If two vectors in one call differ in shapes, dtypes or devices, the call throws Error.

// The inner product of two vectors, as a scalar tensor: an op with derivatives of any order.
// Throws Error for empty lists.
Tensor dot(const Tensors& a, const Tensors& b);
// Multiplies a vector: factor * x.
Tensors scale(const Tensors& x, double factor);
// Adds vectors: x + factor * y.
Tensors add(const Tensors& x, const Tensors& y, double factor = 1);
// The Euclidean norm of a vector, with the sum of squares in f64. Waits for the result. Throws Error for an empty list.
double norm(const Tensors& x);
// A vector of standard normal numbers with the shapes, dtypes and devices of x. The draws of tensor i depend on `seed`
// and the text "NAME.i", where NAME is `name`.
Tensors random_normal_like(const Tensors& x, std::uint64_t seed, std::string_view name);

// ---- products with the Hessian H of a scalar

// The product H v, for a v with the shapes of the parameters: the exact derivative of the gradient along v, computed by
// differentiating the graph of the gradient (Pearlmutter 1994 describes this product). If the gradient is constant, the
// product is 0. The loss keeps its graph.
Tensors hvp(const Tensor& loss, const Tensors& parameters, const Tensors& v);

// Products H v for several v: the gradient and its graph are computed once and kept as long as the object lives.
class HessianProduct {
 public:
  // Computes the gradient. Throws Error like grad().
  HessianProduct(const Tensor& loss, Tensors parameters);
  Tensors operator()(const Tensors& v) const;
  const Tensors& gradient() const { return gradient_; }
  const Tensors& parameters() const { return parameters_; }

 private:
  Tensors parameters_, gradient_;
};

// Options of top_eigenvalue().
struct TopEigenvalueOptions {
  double tolerance = 1e-3;  // largest allowed residual / |value|
  int products = 100;       // largest number of products
  std::uint64_t seed = 0;   // seed of the start vector
};
// The result of top_eigenvalue().
struct TopEigenvalue {
  double value = 0;  // the largest eigenvalue
  Tensors vector;    // the eigenvector, of norm 1
  // An upper bound of || A vector - value vector ||: an eigenvalue lies within this distance of `value`.
  double residual = 0;
  int products = 0;       // number of products that were computed
  bool converged = true;  // whether residual <= tolerance |value|
};

// The largest eigenvalue of a symmetric linear map A, given by its products A v with vectors of the shapes of `like`.
// If the eigenvalues are 2 and -3, the largest eigenvalue is 2, although -3 has the larger magnitude. The method is the
// Lanczos iteration (1950) with full reorthogonalization, which keeps one vector for each product. The value is at most
// the true eigenvalue, up to rounding. If the iteration has not converged after the allowed number of products, the
// result is the estimate so far, with converged = false. Throws Error if a product is not finite.
TopEigenvalue top_eigenvalue(const std::function<Tensors(const Tensors&)>& product, const Tensors& like,
                             const TopEigenvalueOptions& options = {});
// The largest eigenvalue of the Hessian of a loss, called its sharpness.
TopEigenvalue top_eigenvalue(const Tensor& loss, const Tensors& parameters, const TopEigenvalueOptions& options = {});

}  // namespace plumb
