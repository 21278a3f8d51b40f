// Moves parameters away from their initial values, so that no 0 and no 1 hides a term of a gradient.
#pragma once

#include "nn/module.h"
#include "plumb/plumb.h"

namespace plumb::test {

// Adds normal random numbers times `scale` to the parameter.
inline void shake(const nn::Parameter& p, double scale, std::uint64_t seed = 1) {
  copy_into((p.value.detach() + random_normal(p.value.shape(), seed, p.name) * scale).array(), p.value.array());
}

inline void shake(const nn::Module& module, double scale, std::uint64_t seed = 1) {
  for (const nn::Parameter& p : module.parameters()) shake(p, scale, seed);
}

// Shakes every trained parameter by 0.3. Measured values, such as running means, stay the same.
inline void shake_trained(const nn::Module& module) {
  for (const nn::Parameter& p : module.parameters())
    if (!nn::is_measured(p.role)) shake(p, 0.3);
}

}  // namespace plumb::test
