// Four ways to build a deep fully connected network, trained side by side: methods x depths x seeds (docs/deep_mlp.md).
#pragma once

namespace plumb::lab {

// The whole program. Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int deep_mlp(int argc, const char* const* argv);

}  // namespace plumb::lab
