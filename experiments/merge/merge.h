// merge DIR.. --out DIR: merges the ledgers of folders with the same experiment, settings and data into a new folder. A
// trial that is in several folders is taken once. Throws UsageError if the results of such a trial differ in more than
// times.
#pragma once

namespace plumb::lab {

// Runs the whole program and returns the exit status.
int merge(int argc, const char* const* argv);

}  // namespace plumb::lab
