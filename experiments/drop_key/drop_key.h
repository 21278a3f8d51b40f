// Compares dropping keys before the softmax with dropout after it: forms x rates x schedules x seeds
// (docs/ablations/drop_key.md).
#pragma once

namespace plumb::lab {

// Runs the whole program.
//   int main(int argc, char** argv) { return plumb::lab::drop_key(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int drop_key(int argc, const char* const* argv);

}  // namespace plumb::lab
