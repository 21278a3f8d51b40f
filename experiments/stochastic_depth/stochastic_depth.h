// Compares rates of stochastic depth and their schedules over depth: depths x rates x schedules x seeds
// (docs/ablations/stochastic_depth.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gate.
//   int main(int argc, char** argv) { return plumb::lab::stochastic_depth(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int stochastic_depth(int argc, const char* const* argv);

}  // namespace plumb::lab
