// check_gradients(): compares gradients with finite differences, for your own ops and modules.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// Options of check_gradients().
struct CheckGradientsOptions {
  int order = 1;       // 1, or 2 to check the gradients of the gradients too
  double step = 1e-5;  // the step h of the central difference
  // The largest allowed |analytic - numeric| / max(1, |numeric|). In f64 with h = 1e-5, smooth
  // functions give errors of about 1e-9.
  double tolerance = 1e-6;
  std::uint64_t seed = 0;  // seed of the random cotangent and of random directions
  // The largest number of elements of an input that is checked element by element. A larger input is checked along
  // random directions.
  std::int64_t elements = 64;
  std::int64_t directions = 8;  // number of random directions for an input with more than `elements` elements
};

// Compares the gradients of f with respect to each input with central differences of <f(inputs), c> for a random c. The
// inputs must be f64. Returns the largest error. Throws Error if an error exceeds the tolerance; the message names the
// order, the input and the element.
//   check_gradients([](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-6); }, {x, weight, bias},
//                   {.order = 2});
// During the call, check_gradients() changes the inputs a little, in place.
double check_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                       const CheckGradientsOptions& options = {});

// Checks the gradients with respect to variables that f captures, such as the parameters of a module.
//   check_gradients([&] { return model(x); }, {model.weight()});
double check_gradients(const std::function<Tensor()>& f, const Tensors& variables,
                       const CheckGradientsOptions& options = {});

}  // namespace plumb
