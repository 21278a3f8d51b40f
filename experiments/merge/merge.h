// merge DIR.. --out DIR: the ledgers of folders with the same experiment, settings and data in one. A run that several
// have is taken once; UsageError where they have results of it that differ in more than times. Names machines where
// they differ, and how many runs are missing. The folders stay as they are.
#pragma once

namespace plumb::lab {

// The whole program; returns the exit status.
int merge(int argc, const char* const* argv);

}  // namespace plumb::lab
