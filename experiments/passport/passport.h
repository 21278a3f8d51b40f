// Measures how signals and gradients pass through residual networks, at init and during training: methods x depths x
// seeds on one data set.
#pragma once

namespace plumb::lab {

// Runs the whole program: command line, study folder, passes, table and report. Methods that were registered before the
// call are accepted by --gates.
//   int main(int argc, char** argv) { return plumb::lab::passport(argc, argv); }
// Returns the exit status: 0 if every network got its passport (a warning in a passport is a result), 1 for an error at
// run time, 2 for an error on the command line, 130 or 143 after an interrupt.
int passport(int argc, const char* const* argv);

}  // namespace plumb::lab
