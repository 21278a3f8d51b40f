// Finds the largest depth at which each method trains: methods x learning rates x seeds, with a search for the depth
// (docs/ablations/depth_limit.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::depth_limit(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int depth_limit(int argc, const char* const* argv);

}  // namespace plumb::lab
