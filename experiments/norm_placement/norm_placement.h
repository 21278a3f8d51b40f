// Where the norm stands, and which placements train without a warm-up: gates x warm-ups x seeds
// (docs/ablations/norm_placement.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among its --gates.
//   int main(int argc, char** argv) { return plumb::lab::norm_placement(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int norm_placement(int argc, const char* const* argv);

}  // namespace plumb::lab
