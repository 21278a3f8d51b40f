// The initial value of LayerScale in programs that have the options --gate and --init.
#pragma once

#include "experiments/lab/cli/cli.h"
#include "experiments/vision/data/lab.h"

namespace plumb::vision {

// If `gate` is layerscale:init=VALUE, sets `init` to VALUE, explains --init in `cli` and returns true. If VALUE is the
// word for the default, `init` becomes the default for `depth`. For any other gate, the function returns false. Throws
// UsageError if the user gives --init with a different value.
bool take_init_of_gate(Cli& cli, const std::string& gate, std::int64_t depth, double& init);

}  // namespace plumb::vision
