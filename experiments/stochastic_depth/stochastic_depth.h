// Rates of stochastic depth and their course over depth: depths x rates x schedules x seeds
// (docs/ablations/stochastic_depth.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among those of --gate.
//   int main(int argc, char** argv) { return plumb::lab::stochastic_depth(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int stochastic_depth(int argc, const char* const* argv);

}  // namespace plumb::lab
