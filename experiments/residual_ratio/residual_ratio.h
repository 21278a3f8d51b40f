// How much each branch adds to the stream, layer by layer: gates x depths x seeds (docs/ablations/residual_ratio.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among its --gates.
//   int main(int argc, char** argv) { return plumb::lab::residual_ratio(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int residual_ratio(int argc, const char* const* argv);

}  // namespace plumb::lab
