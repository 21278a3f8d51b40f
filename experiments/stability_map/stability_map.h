// Finds the learning rates at which each method trains: methods x depths x seeds, with a search for the learning rates
// (docs/ablations/stability_map.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::stability_map(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int stability_map(int argc, const char* const* argv);

}  // namespace plumb::lab
