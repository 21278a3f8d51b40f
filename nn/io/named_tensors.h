// Tensors by name: the content of weight files and checkpoints. assign() copies such tensors into a model or optimizer.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "autograd/tensor.h"

namespace plumb::nn {

// Tensors by name, in alphabetical order of the names.
using NamedTensors = std::map<std::string, Tensor>;

// Returns copies of all tensors, with separate buffers.
NamedTensors copies(const NamedTensors& tensors);

// Differences between the names of `to` and `from` that assign() accepts. By default assign() accepts no difference.
struct Strictness {
  bool allow_missing = false;     // accept a tensor that is only in `to`; the tensor keeps its values
  bool allow_unexpected = false;  // accept a tensor that is only in `from`; assign() ignores the tensor
};
// Names that are only in `to` (missing) or only in `from` (unexpected).
struct Leftovers {
  std::vector<std::string> missing, unexpected;
};

// Copies each tensor of `from` into the buffer of the tensor with the same name in `to`, with a cast between f32 and
// f64 if necessary. Returns the names that are only in `to` or only in `from`. Throws one Error, and changes nothing,
// if names are missing or unexpected and not allowed, if shapes or dtypes differ, or if no name of `to` is in `from`.
// The message begins with `what`, such as "[load_weights] file", and contains the number and up to ten names of each
// kind of difference.
Leftovers assign(const NamedTensors& to, const NamedTensors& from, const std::string& what, Strictness strictness = {});

// Throws Error if `from` has a counter `name` (i64 []) outside of 0..2^53. Accepts a counter that is missing or has
// another shape, because assign() reports these errors.
void check_counter(const NamedTensors& from, const std::string& name, const std::string& what);

}  // namespace plumb::nn
