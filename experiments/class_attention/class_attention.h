// Compares positions of the class token: designs x seeds (docs/ablations/class_attention.md).
#pragma once

namespace plumb::lab {

// Runs the whole program.
//   int main(int argc, char** argv) { return plumb::lab::class_attention(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int class_attention(int argc, const char* const* argv);

}  // namespace plumb::lab
