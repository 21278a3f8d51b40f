// Activation checkpointing (Chen et al. 2016): computes a part of a model twice instead of keeping its activations.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// Returns f(inputs) and keeps only the inputs; the backward pass runs f again. Recomputation is exact, including
// dropout and DropKey, because random draws depend only on seed, step and path. Tensors that f captures, such as
// parameters, get their gradients too.
//   x = checkpoint([&](const Tensors& in) { return block(in[0]); }, {x});
// Throws Error if f is empty or returns an undefined tensor.
Tensor checkpoint(std::function<Tensor(const Tensors&)> f, const Tensors& inputs);

namespace detail {
// Notes the tensors of the graph that an op uses, for checkpoint(). Every op calls this function.
void note_inputs(const Tensors& inputs);
}  // namespace detail

}  // namespace plumb
