// Trains a ViT with any residual method. Also evaluates trained weights or continues their training (docs/weights.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gate.
//   int main(int argc, char** argv) { return plumb::lab::vit(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int vit(int argc, const char* const* argv);

}  // namespace plumb::lab
