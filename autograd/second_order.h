// Second derivatives: products with the Hessian, exact, and its largest eigenvalue. Lists of tensors stand for one
// vector: the parameters of a model, their gradients, a direction.
//
//   const Tensors parameters = model.trainable();
//   const Tensors hv = hvp(loss, parameters, v);
//   const TopEigenvalue sharpness = top_eigenvalue(loss, parameters);
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// ---- vectors of tensors; both of a pair have the same shapes, dtypes and devices
// ------------------------------------------------------
Tensor dot(const Tensors& a,
           const Tensors& b);  // a scalar: the sum of all products. An op, with derivatives of any order
Tensors scale(const Tensors& x, double factor);
Tensors add(const Tensors& x, const Tensors& y, double factor = 1);  // x + factor y
double norm(const Tensors& x);  // sqrt of the sum of squares, which is in f64; waits for it
Tensors random_normal_like(const Tensors& x, std::uint64_t seed, std::string_view name);

// ---- products with the Hessian H of a scalar
// ------------------------------------------------------------------------------------------ H v, v as the parameters
// are: the derivative of the gradient along v, exactly, by differentiating the gradient's own graph (Pearlmutter 1994
// says what it computes). 0 where the gradient is constant. The loss keeps its graph.
Tensors hvp(const Tensor& loss, const Tensors& parameters, const Tensors& v);

// The same for several v: the gradient and its graph are made once. Holds both until it is destroyed.
class HessianProduct {
 public:
  HessianProduct(const Tensor& loss, Tensors parameters);
  Tensors operator()(const Tensors& v) const;
  const Tensors& gradient() const { return gradient_; }
  const Tensors& parameters() const { return parameters_; }

 private:
  Tensors parameters_, gradient_;
};

struct TopEigenvalueOptions {
  double tolerance = 1e-3;  // of residual / |value|
  int products = 100;       // at most this many
  std::uint64_t seed = 0;   // of the vector to start from
};
struct TopEigenvalue {
  double value = 0;
  Tensors vector;  // of norm 1
  double residual =
      0;  // an upper bound of || A vector - value vector ||: an eigenvalue lies within this distance of `value`
  int products = 0;       // that it took
  bool converged = true;  // residual <= tolerance |value|
};

// The largest eigenvalue (not the largest in magnitude: of 2 and -3 it is 2) of a symmetric linear map A, given by its
// products A v with vectors of `like`'s shapes. Lanczos (1950) with full reorthogonalization: keeps one vector for each
// product. The value is at most the true one, up to rounding. Not converged within `products`: the estimate so far,
// which says so. Throws if a product is not finite.
TopEigenvalue top_eigenvalue(const std::function<Tensors(const Tensors&)>& product, const Tensors& like,
                             const TopEigenvalueOptions& options = {});
// Of the Hessian of a loss: its sharpness.
TopEigenvalue top_eigenvalue(const Tensor& loss, const Tensors& parameters, const TopEigenvalueOptions& options = {});

}  // namespace plumb
