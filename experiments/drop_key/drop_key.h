// Keys dropped before the softmax or probabilities after it: forms x rates x schedules x seeds
// (docs/ablations/drop_key.md).
#pragma once

namespace plumb::lab {

// The whole program.
//   int main(int argc, char** argv) { return plumb::lab::drop_key(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int drop_key(int argc, const char* const* argv);

}  // namespace plumb::lab
