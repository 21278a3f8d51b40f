// Tests whether LayerScale's initial value matters: depths x methods x initial values x warm-ups x seeds
// (docs/ablations/layerscale_init.md).
#pragma once

namespace plumb::lab {

// Runs the whole program.
//   int main(int argc, char** argv) { return plumb::lab::layerscale_init(argc, argv); }
// Returns the exit status (see depth_stability.h). A divergence is a result, not a failure.
int layerscale_init(int argc, const char* const* argv);

}  // namespace plumb::lab
