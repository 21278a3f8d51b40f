// Gradients against finite differences, for ops and modules of one's own.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

struct CheckGradientsOptions {
  int order = 1;       // 2: also the gradients of the gradient
  double step = 1e-5;  // of the central difference, h
  double tolerance =
      1e-6;  // of |analytic - numeric| / max(1, |numeric|); f64 with h = 1e-5 leaves about 1e-9 for smooth functions
  std::uint64_t seed = 0;  // of the random cotangent, and of directions where there are many elements
  std::int64_t elements =
      64;  // inputs with more elements than this are checked along random directions instead of element by element
  std::int64_t directions = 8;
};

// Compares the gradients of f towards each input with central differences of <f(inputs), c>, c random. Inputs are f64
// and are moved a little in place while it runs. Returns the worst error; throws, naming order, input and element, if
// it exceeds the tolerance.
//   check_gradients([](const Tensors& in) { return layer_norm(in[0], in[1], in[2], 1e-6); }, {x, weight, bias}, {.order
//   = 2});
double check_gradients(const std::function<Tensor(const Tensors&)>& f, const Tensors& inputs,
                       const CheckGradientsOptions& options = {});

// The same towards variables that f captures, such as a module's parameters.
//   check_gradients([&] { return model(x); }, {model.weight()});
double check_gradients(const std::function<Tensor()>& f, const Tensors& variables,
                       const CheckGradientsOptions& options = {});

}  // namespace plumb
