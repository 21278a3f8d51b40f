// At which learning rates each method trains: gates x depths x seeds, the edges searched by bisection
// (docs/ablations/stability_map.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among its --gates.
//   int main(int argc, char** argv) { return plumb::lab::stability_map(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int stability_map(int argc, const char* const* argv);

}  // namespace plumb::lab
