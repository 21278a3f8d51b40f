// How much a function stretches its input: the mean squared singular value of its Jacobian.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

struct JacobianOptions {
  std::int64_t exact_limit =
      256;  // outputs of at most so many elements are measured exactly, by one backward pass an element
  std::int64_t probes = 64;  // larger ones by so many random cotangents; at least 2
  std::uint64_t seed = 0;    // of these
};

struct JacobianMeasure {
  double value = 0;
  double standard_error = 0;  // of the estimate; 0 when exact
  bool exact = true;
};

// The mean of the squared singular values of J = df/dx at x: ||J||_F^2 / min(outputs, inputs), both counted in
// elements. 1 for an isometry, and the number that Bachlechner et al. 2020 (ReZero) print of their networks. Where f
// treats the rows of x [B, n] by themselves, J has one block a row and this is the mean over rows. The estimate is the
// mean of ||J^T v||^2 over random v of +1 and -1 (Hutchinson 1990), which is unbiased. f runs once, and v is a function
// of (seed, probe), so equal calls give equal results. Sums are f64; a value that is not finite is returned as it is.
//   mean_squared_singular_value([&](const Tensor& x) { return block(x); }, random_normal({1, T, D}, seed, "x"))
// Throws if f's result is not floating or has no elements, and for options out of range.
JacobianMeasure mean_squared_singular_value(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                                            const JacobianOptions& options = {});

}  // namespace plumb
