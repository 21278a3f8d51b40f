// How signals and gradients go through networks of residual blocks, at init and while they train: gates x depths x
// seeds on one data set.
#pragma once

namespace plumb::lab {

// The whole program: command line, run folder, passes, table and report. Gates that were registered before are among
// its --gates.
//   int main(int argc, char** argv) { return plumb::lab::passport(argc, argv); }
// Returns the exit status: 0 when every network got its passport (a warning in it is a result), 1 for what went wrong
// at run time, 2 for what is wrong on the command line, 130 and 143 after an interrupt.
int passport(int argc, const char* const* argv);

}  // namespace plumb::lab
