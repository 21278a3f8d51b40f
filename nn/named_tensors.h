// Tensors by name: what weight files and checkpoints hold, and what is put back from them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace plumb::nn {

using NamedTensors = std::map<std::string, Tensor>;

NamedTensors copies(const NamedTensors& tensors);  // with buffers of their own

// What may be left over when tensors are put back; nothing unless said.
struct Strictness {
  bool allow_missing = false;     // targets that nothing is given for keep their values
  bool allow_unexpected = false;  // what has no target is ignored
};
struct Leftovers {
  std::vector<std::string> missing, unexpected;
};

// Copies each tensor of `from` into the buffer of the one with its name in `to`, f32 into f64 and back as needed.
// Shapes must be equal. If names are missing or unexpected (and not allowed), a tensor does not fit, or not one of `to`
// is given, throws one Error that tells how many and names up to ten of each kind, begun by `what` ("[load_weights]
// file"), and nothing has changed.
Leftovers assign(const NamedTensors& to, const NamedTensors& from, const std::string& what, Strictness strictness = {});

// Throws if `from` has a counter `name` (i64 []) below 0. What is missing or does not fit is assign()'s to say.
void check_counter(const NamedTensors& from, const std::string& name, const std::string& what);

}  // namespace plumb::nn
