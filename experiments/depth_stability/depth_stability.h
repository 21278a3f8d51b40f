// Tests which residual methods train at which depth: methods x depths x learning rates x seeds on one data set.
#pragma once

namespace plumb::lab {

// Runs the whole program: command line, study folder, training, table and report. Methods that were registered before
// the call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::depth_stability(argc, argv); }
// Returns the exit status: 0 if no trial failed (a divergence is a result, not a failure), 1 for an error at run time,
// 2 for an error on the command line, 130 or 143 after an interrupt.
int depth_stability(int argc, const char* const* argv);

}  // namespace plumb::lab
