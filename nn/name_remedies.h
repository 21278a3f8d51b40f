// Remedies for weights whose names are not ours.
#pragma once

#include "nn/named_tensors.h"

namespace plumb::nn {

// The remedy, for the end of a message, where names that other programs write are recognised in `from`: "module." or
// "_orig_mod." before them, averaged weights beside the weights, blocks in chunks (DINOv2), ls1.weight for ls1.gamma.
// "" where they are not.
std::string remedy_for_names(const NamedTensors& from);
// The same where `from` does not fit `to`: also a prefix of a model in a model, and LayerScale that one has and the
// other has not.
std::string remedy_for_names(const NamedTensors& to, const NamedTensors& from);

}  // namespace plumb::nn
