// Moves parameters away from their initial values, so that no 0 and no 1 hides a term of a gradient.
#pragma once

#include "autograd/autograd.h"
#include "nn/module.h"

namespace plumb::test {

// Adds normal random numbers times `scale` to every parameter.
inline void shake(const nn::Module& module, double scale, std::uint64_t seed = 1) {
  for (const nn::Parameter& p : module.parameters())
    copy_into((p.value.detach() + random_normal(p.value.shape(), seed, p.name) * scale).array(), p.value.array());
}

// Adds normal random numbers times 0.3 to every trained parameter. Measured values, such as running means, stay the
// same.
inline void shake_trained(const nn::Module& module) {
  for (const nn::Parameter& p : module.parameters())
    if (!nn::is_measured(p.role))
      copy_into((p.value.detach() + 0.3 * random_normal(p.value.shape(), 1, p.name)).array(), p.value.array());
}

}  // namespace plumb::test
