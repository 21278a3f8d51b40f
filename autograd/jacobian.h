// The mean squared singular value of a Jacobian. This number measures how strongly a function stretches its input.
#pragma once

#include <functional>

#include "autograd/tensor.h"
#include "core/estimate.h"

namespace plumb {

// Options of mean_squared_singular_value().
struct JacobianOptions {
  // The largest number of output elements of f for which the result is exact. An exact result takes one backward pass
  // for each output element.
  std::int64_t exact_limit = 256;
  std::int64_t probes = 64;  // number of random cotangents if the result is not exact; at least 2
  std::uint64_t seed = 0;    // seed of the random cotangents
};

// The mean of the squared singular values of J = df/dx at x: ||J||_F^2 / min(outputs, inputs), both counted in
// elements. The mean is 1 for an isometry. Bachlechner et al. 2020 (ReZero) report this number for their networks. If f
// treats the rows of x [B, n] separately, J has one block for each row, and the result is the mean over rows.
//
// The estimate is the mean of ||J^T v||^2 over random v of +1 and -1 (Hutchinson 1990). The estimate is unbiased. f
// runs once. v depends only on (seed, probe), so equal calls give equal results. Sums are f64. A value that is not
// finite is returned unchanged.
//   mean_squared_singular_value([&](const Tensor& x) { return block(x); }, random_normal({1, T, D}, seed, "x"))
// Throws Error if x or f(x) is not floating or has no elements, or if an option is out of range.
Estimate mean_squared_singular_value(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                                     const JacobianOptions& options = {});

}  // namespace plumb
