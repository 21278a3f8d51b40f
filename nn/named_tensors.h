// Tensors by name: the content of weight files and checkpoints, and copying it back into a model or optimizer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace plumb::nn {

// Tensors by name, in alphabetical order of the names.
using NamedTensors = std::map<std::string, Tensor>;

// Copies of all tensors, with separate buffers.
NamedTensors copies(const NamedTensors& tensors);

// Differences between the names that assign() tolerates; by default none.
struct Strictness {
  bool allow_missing = false;     // a tensor of `to` that `from` lacks keeps its values
  bool allow_unexpected = false;  // a tensor of `from` that `to` lacks is ignored
};
// Names that are only in `to` (missing) or only in `from` (unexpected).
struct Leftovers {
  std::vector<std::string> missing, unexpected;
};

// Copies each tensor of `from` into the buffer of the tensor with its name in `to`, with a cast between f32 and f64 if
// necessary, and returns the names that are on one side only. Throws one Error, and changes nothing, if names are
// missing or unexpected and not allowed, if shapes or dtypes differ, or if no name of `to` is in `from`. The message
// begins with `what` ("[load_weights] file"), and gives the number and up to ten names of each kind.
Leftovers assign(const NamedTensors& to, const NamedTensors& from, const std::string& what, Strictness strictness = {});

// Throws Error if `from` has a counter `name` (i64 []) below 0. A counter that is missing or has another shape is left
// to assign().
void check_counter(const NamedTensors& from, const std::string& name, const std::string& what);

}  // namespace plumb::nn
