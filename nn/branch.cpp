#include "nn/branch.h"

#include "nn/scoped_value.h"

namespace plumb::nn {

Tensor Branch::operator()(const Tensor& x, const Inside* inside) const {
  const ScopedValue current(inside_, inside);
  return (*this)(x);
}

}  // namespace plumb::nn
