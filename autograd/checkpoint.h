// Activation checkpointing (Chen et al. 2016): trades the memory of a part's activations for computing it twice.
#pragma once

#include <functional>

#include "autograd/tensor.h"

namespace plumb {

// f(inputs), of which only the inputs are kept: the backward pass runs f again. Recomputation is exact, dropout and
// DropKey included, because random draws depend on seed, step and path alone. Tensors that f captures (parameters, too)
// get their gradients.
//   x = checkpoint([&](const Tensors& in) { return block(in[0]); }, {x});
Tensor checkpoint(std::function<Tensor(const Tensors&)> f, const Tensors& inputs);

namespace detail {
void note_inputs(
    const Tensors& inputs);  // an op runs unrecorded: remembers which graph tensors it used, for checkpoint()
}

}  // namespace plumb
