// Compares four kinds of deep fully connected networks: methods x depths x seeds (docs/deep_mlp.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int deep_mlp(int argc, const char* const* argv);

}  // namespace plumb::lab
