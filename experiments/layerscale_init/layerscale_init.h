// Whether LayerScale's initial value matters: depths x gates x initial values x seeds
// (docs/ablations/layerscale_init.md).
#pragma once

namespace plumb::lab {

// The whole program.
//   int main(int argc, char** argv) { return plumb::lab::layerscale_init(argc, argv); }
// Returns the exit status, as depth_stability does: divergence is a result, not a failure.
int layerscale_init(int argc, const char* const* argv);

}  // namespace plumb::lab
