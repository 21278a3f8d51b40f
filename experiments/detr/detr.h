// Compares DropKey with dropout of attention in a DETR: forms x schedules x places x seeds (docs/ablations/detr.md).
#pragma once

namespace plumb::lab {

// Runs the whole program.
//   int main(int argc, char** argv) { return plumb::lab::detr(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int detr(int argc, const char* const* argv);

}  // namespace plumb::lab
