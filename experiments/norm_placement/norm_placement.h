// Compares placements of the norm, with and without a warm-up: methods x depths x warm-ups x learning rates x seeds
// (docs/ablations/norm_placement.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::norm_placement(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int norm_placement(int argc, const char* const* argv);

}  // namespace plumb::lab
