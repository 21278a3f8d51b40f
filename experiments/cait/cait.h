// Trains a CaiT as published or at another size. Also evaluates trained weights or continues their training
// (docs/weights.md).
#pragma once

namespace plumb::lab {

// Runs the whole program. Methods that were registered before the call are accepted by --gate.
//   int main(int argc, char** argv) { return plumb::lab::cait(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int cait(int argc, const char* const* argv);

}  // namespace plumb::lab
