// check_gradients(): compares gradients with finite differences, for your own ops and modules.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// Options of check_gradients().
struct CheckGradientsOptions {
  int order = 1;       // 2: also check the gradients of the gradients
  double step = 1e-5;  // the step h of the central difference
  // The largest allowed |analytic - numeric| / max(1, |numeric|). In f64 with h = 1e-5, smooth
  // functions give errors of about 1e-9.
  double tolerance = 1e-6;
  std::uint64_t seed = 0;  // seed of the random cotangent and of random directions
  // Inputs with more elements than this are checked along random directions instead of element by element.
  std::int64_t elements = 64;
  std::int64_t directions = 8;  // number of random directions for such an input
};

// Compares the gradients of f with respect to each input with central differences of <f(inputs), c>, c random. The
// inputs must be f64. Returns the largest error. Throws Error if it exceeds the tolerance; the message names the order,
// the input and the element.
//   check_gradients([](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-6); }, {x, weight, bias},
//                   {.order = 2});
// While it runs, it changes the inputs a little, in place.
double check_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                       const CheckGradientsOptions& options = {});

// Checks the gradients with respect to variables that f captures, such as the parameters of a module.
//   check_gradients([&] { return model(x); }, {model.weight()});
double check_gradients(const std::function<Tensor()>& f, const Tensors& variables,
                       const CheckGradientsOptions& options = {});

}  // namespace plumb
