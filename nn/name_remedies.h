// Advice for files of weights whose parameter names differ from ours.
#pragma once

#include "nn/named_tensors.h"

namespace plumb::nn {

// Returns advice, for the end of a message, if `from` has names that other programs are known to write: the prefix
// "module." or "_orig_mod.", averaged weights next to the weights, blocks in chunks (DINOv2), ls1.weight for ls1.gamma.
// Returns "" otherwise.
std::string remedy_for_names(const NamedTensors& from);
// Returns advice for `from`, which does not fit `to`. In addition to the cases above, it recognises the prefix of a
// model inside another model, and LayerScale that only one of the two has.
std::string remedy_for_names(const NamedTensors& to, const NamedTensors& from);

}  // namespace plumb::nn
