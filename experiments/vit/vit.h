// Trains a ViT with any residual method, evaluates one that was trained, or trains it on (docs/weights.md).
#pragma once

namespace plumb::lab {

// The whole program. Gates that were registered before are among those of --gate.
//   int main(int argc, char** argv) { return plumb::lab::vit(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int vit(int argc, const char* const* argv);

}  // namespace plumb::lab
