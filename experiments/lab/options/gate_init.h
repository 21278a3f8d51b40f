// LayerScale's start in programs that have --gate and --init.
#pragma once

#include "experiments/lab/cli/cli.h"

namespace plumb::lab {

// Sets --init as --gate says it, where that is layerscale:init=VALUE. Returns whether it does. Throws UsageError if
// --init was given another value.
bool take_init_of_gate(Cli& cli, const std::string& gate, std::int64_t depth, double& init);

}  // namespace plumb::lab
