// How deep each method trains: gates x learning rates x seeds, the depth searched by bisection
// (docs/ablations/depth_limit.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among its --gates.
//   int main(int argc, char** argv) { return plumb::lab::depth_limit(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int depth_limit(int argc, const char* const* argv);

}  // namespace plumb::lab
