// Advice for weight files whose parameter names differ from Plumb's names.
#pragma once

#include <map>
#include <string>

#include "autograd/tensor.h"

namespace plumb::nn {

// Returns advice for the end of a message if `from` has names that are typical of other programs: the prefix "module."
// or "_orig_mod.", averaged weights next to the weights, blocks in chunks (DINOv2), or ls1.weight instead of ls1.gamma.
// Returns "" otherwise.
std::string remedy_for_names(const std::map<std::string, Tensor>& from);
// Returns advice if the names of `from` do not match those of `to`. In addition to the cases above, this function
// recognises the prefix of a model inside another model, and LayerScale parameters in only one of `to` and `from`.
std::string remedy_for_names(const std::map<std::string, Tensor>& to, const std::map<std::string, Tensor>& from);

}  // namespace plumb::nn
