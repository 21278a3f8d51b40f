// Tests which of Fixup's rules a training needs: sets of rules x depths x seeds (docs/ablations/fixup_scalars.md).
#pragma once

namespace plumb::lab {

// Runs the whole program.
//   int main(int argc, char** argv) { return plumb::lab::fixup_scalars(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int fixup_scalars(int argc, const char* const* argv);

}  // namespace plumb::lab
