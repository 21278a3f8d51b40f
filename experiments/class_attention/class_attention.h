// Where the class token comes in: designs x seeds (docs/ablations/class_attention.md).
#pragma once

namespace plumb::lab {

// The whole program.
//   int main(int argc, char** argv) { return plumb::lab::class_attention(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int class_attention(int argc, const char* const* argv);

}  // namespace plumb::lab
