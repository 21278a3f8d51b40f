// Measures how much each branch adds to the stream, layer by layer: methods x depths x seeds
// (docs/ablations/residual_ratio.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::residual_ratio(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int residual_ratio(int argc, const char* const* argv);

}  // namespace plumb::lab
