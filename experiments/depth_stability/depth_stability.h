// Which residual gates train at which depth: gates x depths x learning rates x seeds on one data set, each trial a
// training run.
#pragma once

namespace plumb::lab {

// The whole program: command line, run folder, training, table and report. Gates that were registered before are among
// its --gates.
//   int main(int argc, char** argv) { return plumb::lab::depth_stability(argc, argv); }
// Returns the exit status: 0 when every trial reached a verdict (divergence is one), 1 for what went wrong at run time,
// 2 for what is wrong on the command line, 130 and 143 after an interrupt.
int depth_stability(int argc, const char* const* argv);

}  // namespace plumb::lab
